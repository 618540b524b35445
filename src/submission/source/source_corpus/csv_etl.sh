#!/usr/bin/env bash
#
#SBATCH --account=clim
#SBATCH --job-name=etl
#SBATCH --ntasks=1
#SBATCH --mem=6000
#SBATCH --time=1:55:00
#SBATCH --output=logs/%x_%j.out
IN=data/trips_2400k.csv
wc -c $IN
python etl.py $IN
