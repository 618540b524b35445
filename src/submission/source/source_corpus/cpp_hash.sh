#!/bin/bash
# adapted from the cluster wiki
#SBATCH -o logs/%x_%j.out
#SBATCH --mem 1G
#SBATCH -t 4:00
#SBATCH -A eng
#SBATCH -n 1
#SBATCH -J dedupe
#SBATCH -p main

g++ -O2 -std=c++17 dedupe.cpp -o dedupe
./dedupe ${ROWS} 0.9
