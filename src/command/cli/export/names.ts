/** Names the files that `effect export` writes. */
import { basename } from "node:path"
import { fromPath } from "../../../run/identifier.ts"

/** Returns the name of the written file, without its ending: from the identifier of the run, or from its folder. */
export const nameFor = (run: string): string => {
  const identity = fromPath(run)
  return identity === undefined
    ? basename(run)
    : [identity.name, ...Object.values(identity.population), identity.seed].join("-").replace(/[^\w.-]+/g, "-")
}
