#!/bin/bash
#SBATCH --time=0:10:00
#SBATCH --mem=2000M
#SBATCH --job-name=turb_spec
#SBATCH --cpus-per-task=1
#SBATCH --ntasks=1
#SBATCH --account=clim

export SEED=42
python3 spectrum.py
