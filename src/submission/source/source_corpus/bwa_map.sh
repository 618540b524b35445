#!/bin/bash
# usage: map.sh REF READS OUT
set -euo pipefail
REF=$1; FQ=$2; OUT=$3
T=${THREADS:-1}
[ -f $REF.bwt ] || bwa index $REF 2> index.log
bwa mem -t $T $REF $FQ 2> bwa.log | samtools sort -@ $((T-1)) -m ${SORTMEM:-768M} -o $OUT -
samtools index $OUT
samtools flagstat $OUT | head -5
