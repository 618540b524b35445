DB=$1
Q=$2
NT=$3
if [ ! -f $DB.pin ]; then
  makeblastdb -in $DB -dbtype prot -out $DB > /dev/null
fi
blastp -query $Q -db $DB -evalue ${EV:-10} -num_threads $NT -outfmt 6 -out hits.tsv
wc -l hits.tsv
