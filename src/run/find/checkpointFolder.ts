/** Where a run keeps its checkpoints, as its config says. */
import { tidyFolder } from "../../config/files.ts"
import { dataAt } from "./Value.ts"

/** The folder of a run's checkpoints: relative to the run's folder, or absolute; `.` is the run's folder itself. */
export const checkpointFolder = (config: unknown): string => {
  const named = dataAt(config, ["checkpoint", "dir"]) ?? dataAt(config, ["runtime", "checkpoint_dir"])
  if (typeof named !== "string") return "checkpoints"
  return named.startsWith("/") ? `/${tidyFolder(named)}` : tidyFolder(named)
}

/**
 * The part of a file's path below the folder of the checkpoints; undefined for a file that lies elsewhere. In a run's own
 * folder only `latest.json` and folders that are named as checkpoints belong to them.
 */
export const belowCheckpoints = (path: string, folder: string): string | undefined => {
  if (folder === ".") return /^(?:step|ep)_\d+\/|^latest\.json$/.test(path) ? path : undefined
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : undefined
}
