/** Where a run of agents that talk keeps what only it has, below its folder. */
export const memoryFile = (episode: number): string => `memories/memory_${episode}.jsonl`

export const rolloutsFile = (phase: "train" | number): string =>
  phase === "train" ? "rollouts/train/rollouts.jsonl" : `rollouts/val/${phase}_seen_episodes_rollouts.jsonl`
