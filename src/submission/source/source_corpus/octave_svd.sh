#!/bin/bash
# svdnoise: octave_svd runs
#SBATCH --job-name=svdnoise
#SBATCH --mem=250M
#SBATCH --nodes=1
#SBATCH --partition=main
#SBATCH --time=0:15:00
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1

export NPIX=1000 REPS=4
octave --no-gui --quiet denoise.m
