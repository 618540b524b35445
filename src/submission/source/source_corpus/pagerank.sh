#!/bin/bash
#SBATCH -J pagerank
#SBATCH --mem=1500M
#SBATCH -t 30
#SBATCH -c 1
#SBATCH -p long
#SBATCH -o logs/%x_%j.out
#SBATCH -A eng

python pagerank.py \
  --impl dict \
  --nodes ${NODES} --avg-degree=12 \
  --iterations 5
