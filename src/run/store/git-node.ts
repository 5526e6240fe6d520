/** Asks git for the commit and the changes of the code that makes a run. */
import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, realpathSync } from "node:fs"
import { dirname, join, sep } from "node:path"
import { Effect } from "effect"
import type { Code } from "./RunStore.ts"

/**
 * The longest diff, in characters, that a run saves. A longer one probably contains generated files: only its hash is
 * saved.
 */
const longestDiff = 1 << 20

/** Holds the answers of git by the folders of the repositories. */
const answers = new Map<string, Code>()

/**
 * Reads the commit of the working directory and its uncommitted changes; undefined outside git. It asks git when the first
 * run of a repository starts in this process, and keeps the answer, because this process continues to use the modules that it
 * has loaded.
 */
export const gitProvenance: Effect.Effect<Code | undefined> = Effect.gen(function* () {
  // If these variables are set, git does not search the folders above for the repository.
  if (process.env.GIT_DIR !== undefined || process.env.GIT_WORK_TREE !== undefined) return yield* askGit
  const repository = repositoryOf(workingDirectory())
  if (repository === undefined) return undefined
  const answer = answers.get(repository) ?? (yield* askGit)
  if (answer !== undefined) answers.set(repository, answer)
  return answer
})

/** Returns the first seven digits of the commit; `no-hash` outside git. */
export const shortCommit = (provenance: Code | undefined): string => provenance?.commit.slice(0, 7) ?? "no-hash"

/** Returns the first seven digits of the working directory's commit; `no-hash` outside git. */
export const gitCommit: Effect.Effect<string> = Effect.map(gitProvenance, shortCommit)

/** Returns the working directory; the root if it has been deleted. */
const workingDirectory = (): string => {
  try {
    return process.cwd()
  } catch {
    return "/"
  }
}

/** Returns the closest folder with a `.git`, as git finds it, without starting git. */
const repositoryOf = (folder: string): string | undefined => {
  if (existsSync(join(folder, ".git"))) return folder
  const outer = dirname(folder)
  return outer === folder ? undefined : repositoryOf(outer)
}

/**
 * Asks git about the working directory. If git cannot give the diff, for example because it has more than 256 MiB, the code
 * still counts as changed.
 */
const askGit = Effect.gen(function* () {
  const [head, diff] = yield* Effect.all(
    [git("rev-parse", "HEAD"), git("diff", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD")],
    { concurrency: "unbounded" },
  )
  const commit = head?.trim()
  if (commit === undefined) return undefined
  if (diff === undefined) return { commit, dirty: true, diff_sha256: null }
  const dirty = diff !== ""
  const digest = dirty ? createHash("sha256").update(diff).digest("hex") : null
  return { commit, dirty, diff_sha256: digest, diff: dirty && diff.length <= longestDiff ? diff : undefined }
})

/** Returns those of some absolute paths that git tracks in the repository of the working directory. */
export const trackedAmong = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const top = (yield* git("rev-parse", "--show-toplevel"))?.replace(/\r?\n$/, "")
  if (top === undefined) return new Set<string>()
  // Git refuses all paths if one is outside of the repository.
  const inside = paths.filter((path) => realPath(path).startsWith(`${top}/`))
  const names = inside.length === 0 ? "" : yield* git("ls-files", "-z", "--full-name", "--", ...inside)
  const tracked = new Set((names ?? "").split("\0").map((name) => `${top}/${name}`))
  return new Set(inside.filter((path) => tracked.has(realPath(path))))
})

/** Returns the path without links, with slashes as git writes them. */
const realPath = (path: string): string => {
  try {
    return realpathSync(path).split(sep).join("/")
  } catch {
    return path
  }
}

/**
 * Options that prevent git from starting programs which a repository's own settings name. The repository may come from
 * somebody else.
 */
const withoutPrograms = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]

/** Runs git in the working directory. Returns its output; undefined if it fails. */
function git(...args: ReadonlyArray<string>): Effect.Effect<string | undefined> {
  return Effect.callback((resume) => {
    execFile("git", [...withoutPrograms, ...args], { maxBuffer: 1 << 28 }, (error, stdout) =>
      resume(Effect.succeed(error === null ? stdout : undefined)),
    )
  })
}
