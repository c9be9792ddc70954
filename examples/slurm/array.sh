#!/bin/bash
# Thirty baselines as an array of jobs: every job plays its share of the runs into one folder, and the last sums up.
# `mkdir -p log; sbatch array.sh` starts it; the same again goes on after a time limit.
#SBATCH --job-name=baselines
#SBATCH --array=1-30
#SBATCH --cpus-per-task=2
#SBATCH --time=02:00:00
#SBATCH --signal=TERM@60
#SBATCH --output=log/%A-%a.txt
srun omdpd run thirty_baselines.toml --out "${RESULTS:-results/baselines}" --jobs "$SLURM_CPUS_PER_TASK" \
    --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" "$@"
