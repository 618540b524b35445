#!/bin/bash
# adapted from the cluster wiki
#SBATCH -n 1
#SBATCH -J dock_score
#SBATCH --mem 600
#SBATCH -A phys
#SBATCH -c 2
#SBATCH --requeue
#SBATCH -t 00:02:00
export NWORKERS=2
python3 screen.py ${1} 1024
