#!/bin/bash
# adapted from the cluster wiki
#SBATCH --account=bio
#SBATCH --partition=short
#SBATCH --time=1:00:00
#SBATCH --output=%x.o%j
#SBATCH --job-name=kcount
#SBATCH --mem-per-cpu=700MB
#SBATCH --ntasks=1
#SBATCH --nodes=1
#SBATCH --error=%x.e%j
python3 count_kmers.py reads_${1}kb.fa -k 11
