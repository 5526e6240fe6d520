/** Checks out another revision of the project beside this one, so that both can be measured in one run. */
import { spawnSync } from "node:child_process"
import { symlinkSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { atEnd } from "./atEnd.ts"
import { temporaryFolder } from "./measuring.ts"

const root = fileURLToPath(new URL("..", import.meta.url))

const git = (...args: ReadonlyArray<string>): string => {
  const { error, status, stdout, stderr } = spawnSync("git", ["-C", root, ...args], { encoding: "utf8" })
  if (error !== undefined || status !== 0) throw new Error(error?.message ?? stderr.trim())
  return stdout.trim()
}

const commitOf = (revision: string): string => {
  try {
    return git("rev-parse", "--verify", "--quiet", "--end-of-options", `${revision}^{commit}`)
  } catch {
    throw new Error(`--compare ${revision}: git knows no such revision`)
  }
}

/**
 * Calls `use` with the folder of a revision, which shares `node_modules` with this folder and is deleted at the end.
 * So a change of the dependencies between the revisions is not measured.
 */
export const withRevision = async <A>(revision: string, use: (folder: string) => Promise<A>): Promise<A> => {
  const commit = commitOf(revision)
  const temporary = temporaryFolder()
  const folder = join(temporary.folder, "revision")
  try {
    git("worktree", "add", "--quiet", "--detach", folder, commit)
    const remove = atEnd(() => void git("worktree", "remove", "--force", folder))
    try {
      symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
      return await use(folder)
    } finally {
      remove()
    }
  } finally {
    temporary.remove()
  }
}
