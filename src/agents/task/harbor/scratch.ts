/**
 * Gives an episode of a Harbor task a scratch folder with the task's working directory, and runs the verifier there. What the
 * task's files name as `/app`, `/tests` and `/logs` (in general: the first folder of the working directory) are folders in the
 * scratch folder, so their absolute paths are replaced before the verifier runs.
 */
import { Effect, FileSystem, Path, type Scope, Schema } from "effect"
import { invalid, type EnvError } from "../../../base/EnvError.ts"
import { exists, makeFolder, readText, systemMessage } from "../../../base/files/files.ts"
import { jsonText } from "../../../base/text/jsonText.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { within } from "../../../spread/programs/timeLimit.ts"
import { AgentPrograms } from "../../agent/outside/AgentPrograms.ts"
import { filesOf, type FolderFile, workdirLimits, writeInto } from "./folderFiles.ts"
import { type HarborTask, isInside } from "./taskFolder.ts"

/** Where the working directory of a task is: below a scratch folder. */
export interface PlacedFolder {
  readonly root: string
  readonly workdir: string
}

/** The scratch folder of an episode. */
export interface Scratch extends PlacedFolder {
  readonly task: HarborTask
}

export type Files = FileSystem.FileSystem | Path.Path

const failing =
  (id: string) =>
  <A, R>(effect: Effect.Effect<A, string, R>): Effect.Effect<A, EnvError, R> =>
    Effect.mapError(effect, (problem) => invalid(id, problem))

/**
 * Returns the path in the scratch folder for a path in the task's working directory; undefined for any other path. A relative path
 * starts in the working directory.
 */
export const placeOf = (paths: Path.Path, { root, workdir }: PlacedFolder, path: string): string | undefined => {
  const whole = paths.resolve(workdir, path)
  return isInside(whole, workdir) && !path.includes("\0") ? paths.join(root, whole) : undefined
}

/** A file that a Dockerfile copies to an absolute path. */
interface CopiedFile {
  readonly at: string
  readonly bytes: Uint8Array
}

/** Returns the files that a step of a Dockerfile copies from one file or folder; none if there is no such file. */
const copiedFrom = (
  paths: Path.Path,
  files: ReadonlyArray<FolderFile>,
  source: string,
  { target, isFolder }: { readonly target: string; readonly isFolder: boolean },
): ReadonlyArray<CopiedFile> => {
  const wanted = paths.normalize(source).replace(/^\/|\/$/g, "")
  return files.flatMap(({ path, bytes }) => {
    if (path === wanted) return [{ at: isFolder ? paths.join(target, paths.basename(path)) : target, bytes }]
    if (wanted === ".") return [{ at: paths.join(target, path), bytes }]
    return path.startsWith(`${wanted}/`) ? [{ at: paths.join(target, path.slice(wanted.length + 1)), bytes }] : []
  })
}

/** Returns the files that the Dockerfile of a task copies. */
const copied = Effect.fnUntraced(function* ({ id, workdir, copies, environmentFiles }: HarborTask) {
  const paths = yield* Path.Path
  const files: Array<CopiedFile> = []
  for (const { from, to, workdir: inside } of copies) {
    const target = paths.resolve(inside, to)
    const isFolder = from.length > 1 || /(^|\/)\.?$/.test(to) || target === workdir
    for (const source of from) {
      const some = copiedFrom(paths, environmentFiles, source, { target, isFolder })
      if (some.length === 0)
        return yield* invalid(id, `environment/Dockerfile: there is no ${source} in environment/ to copy`)
      files.push(...some)
    }
  }
  return files
})

/** Makes the scratch folder of an episode, which is removed with its scope. */
export const makeScratch = Effect.fnUntraced(function* (
  task: HarborTask,
): Effect.fn.Return<Scratch, EnvError, Files | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const made = fs.makeTempDirectoryScoped({ prefix: "effect-rl-harbor-" })
  const root = yield* failing(task.id)(Effect.mapError(made, systemMessage))
  const { workdir } = task
  const scratch: Scratch = { task, root, workdir }
  for (const folder of [workdir, "/logs/verifier", "/home", "/tmp"]) {
    const making = makeFolder(paths.join(root, folder))
    yield* failing(task.id)(Effect.mapError(making, ({ message }) => message))
  }
  for (const { at, bytes } of yield* copied(task)) {
    const place = placeOf(paths, scratch, at)
    if (place === undefined)
      return yield* invalid(task.id, `environment/Dockerfile: expected copies into ${workdir}, found ${at}`)
    yield* failing(task.id)(writeInto(place, bytes))
  }
  return scratch
})

/** Replaces the absolute paths of a task's folders in a text by those in the scratch folder. */
export const withPlaces = (text: string, { root, workdir }: PlacedFolder): string => {
  const tops = ["tests", "logs", workdir.split("/")[1]].map((name) => name.replaceAll(".", "\\."))
  const path = new RegExp(`(?<![\\w.\\-/~}\\]])/(?=(${tops.join("|")})(?![\\w.-]))`, "g")
  return text.replace(path, () => `${root}/`)
}

/** Replaces the paths in a file; undefined if the file is no text, or has none of them. */
const placed = (scratch: Scratch, { bytes }: FolderFile): Uint8Array | undefined => {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes)
    const changed = withPlaces(text, scratch)
    return changed === text ? undefined : utf8.encode(changed)
  } catch {
    return undefined
  }
}

/** Writes the files of the verifier, and replaces the paths in them and in the agent's files, so that both still agree. */
const placeAll = Effect.fnUntraced(function* (scratch: Scratch) {
  const { task, root, workdir } = scratch
  const paths = yield* Path.Path
  for (const file of task.testFiles)
    yield* writeInto(paths.join(root, "tests", file.path), placed(scratch, file) ?? file.bytes)
  const folder = paths.join(root, workdir)
  for (const file of yield* Effect.mapError(filesOf(folder, workdirLimits), ({ message }) => message)) {
    const bytes = placed(scratch, file)
    if (bytes !== undefined) yield* writeInto(paths.join(folder, file.path), bytes)
  }
})

/** Runs the verifier: without core files, with files of at most 1 GiB, and with the end of its output only. */
const script = 'ulimit -c 0; ulimit -f 1048576; bash "$1" 2>&1 | tail -c 2000; exit 0'

const Rewards = Schema.Record(Schema.String, Schema.Finite)
const decodeRewards = Schema.decodeUnknownEffect(jsonText(Rewards))
const mostRewardBytes = 64 * 1024

/** Reads the reward that the verifier wrote: `reward.json`, or else `reward.txt`. */
const readReward = Effect.fnUntraced(function* ({ root }: Scratch, output: string) {
  const paths = yield* Path.Path
  const at = (name: string): string => paths.join(root, "logs", "verifier", name)
  const read = (name: string) =>
    Effect.mapError(readText(at(name), mostRewardBytes), ({ message }) => `/logs/verifier/${name}: ${message}`)
  if (yield* exists(at("reward.json"))) {
    const expected = () =>
      "/logs/verifier/reward.json: expected an object with numbers and the key reward, found another text"
    const rewards = yield* Effect.mapError(decodeRewards(yield* read("reward.json")), expected)
    return "reward" in rewards ? { reward: rewards["reward"], rewards } : yield* Effect.fail(expected())
  }
  const end = output.trim() === "" ? "it printed nothing" : `the end of its output: ${output.trim()}`
  if (!(yield* exists(at("reward.txt"))))
    return yield* Effect.fail(
      `tests/test.sh: expected a reward in /logs/verifier/reward.txt or reward.json, found none; ${end}`,
    )
  const text = (yield* read("reward.txt")).trim()
  const reward = Number(text)
  if (text !== "" && Number.isFinite(reward)) return { reward, rewards: { reward } }
  return yield* Effect.fail(`/logs/verifier/reward.txt: expected a number, found ${JSON.stringify(text.slice(0, 100))}`)
})

/** Runs `tests/test.sh`, and returns the rewards. The agent has ended, so it cannot see the tests. */
export const verify = Effect.fnUntraced(function* (scratch: Scratch, timeoutS: number) {
  const { task, root } = scratch
  const paths = yield* Path.Path
  const { run } = yield* AgentPrograms
  yield* failing(task.id)(placeAll(scratch))
  const variables = Object.entries(task.variables).map(([name, value]) => [name, withPlaces(value, scratch)] as const)
  const program = {
    agent: `env "${task.id}"`,
    command: ["bash", "-c", script, "verifier", paths.join(root, "tests", "test.sh")],
    cwd: paths.join(root, task.workdir),
    variables: [],
    environment: { ...Object.fromEntries(variables), HOME: paths.join(root, "home"), TMPDIR: paths.join(root, "tmp") },
    input: "",
  }
  const running = Effect.mapError(run(program), ({ message }) => invalid(task.id, message))
  const late = Effect.suspend(() => Effect.fail(invalid(task.id, `tests/test.sh did not end within ${timeoutS} s`)))
  const output = yield* within(running, timeoutS, late)
  return yield* failing(task.id)(readReward(scratch, output))
})
