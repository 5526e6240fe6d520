/** Where a run of agents that talk keeps what only it has, below its folder. */
export const memoryFile = (episode: number): string => `memories/memory_${episode}.jsonl`

export const rolloutsFile = (phase: "train" | number): string =>
  phase === "train" ? "rollouts/train/rollouts.jsonl" : `rollouts/val/${phase}_seen_episodes_rollouts.jsonl`

/** Below the run's folder, which has `scores/` in it: of `scores.jsonl` that is `.`, of `logs/scores.jsonl` it is `logs`. */
export const scoresFolder = (scoresPath: string | null): string => {
  if (scoresPath === null) return "."
  const root = scoresPath.startsWith("/") ? "/" : ""
  const parts = scoresPath.split("/").filter((part) => part !== "" && part !== ".")
  const last = parts.at(-1) ?? ""
  const folders = last.lastIndexOf(".") > 0 ? parts.slice(0, -1) : parts
  return folders.length === 0 ? root || "." : `${root}${folders.join("/")}`
}
