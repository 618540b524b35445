#!/bin/bash
#SBATCH --account=clim
#SBATCH --partition=main
#SBATCH --export=ALL
#SBATCH --mem=6000
#SBATCH --nodes=1
#SBATCH --time=115:00

# module load R/4.2
N=200000
B=50
Rscript --vanilla boot.R $N $B 5
