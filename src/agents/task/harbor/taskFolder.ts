/**
 * Reads the folder of a Harbor task: `task.toml`, `instruction.md`, `environment/` and `tests/`. A task that needs a container is
 * told apart from one whose files are wrong.
 */
import { Effect, type FileSystem, Path, Schema } from "effect"
import { ConfigError } from "../../../base/config/Config.ts"
import { exists, mostBytes, namesIn, readText } from "../../../base/files/files.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { oneLine } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { readTomlText } from "../../../base/formats/toml.ts"
import { type ContainerNeed, type CopiedFiles, needInScript, needInSettings, readDockerfile } from "./containerNeeds.ts"
import { filesOf, type FolderFile, refuseLink } from "./folderFiles.ts"

/** A task that needs no container. */
export interface HarborTask {
  readonly id: string
  readonly instruction: string
  /** The working directory of the agent and of the verifier, as the task names it. */
  readonly workdir: string
  readonly copies: ReadonlyArray<CopiedFiles>
  readonly environmentFiles: ReadonlyArray<FolderFile>
  readonly testFiles: ReadonlyArray<FolderFile>
  /** The environment variables of the verifier. */
  readonly variables: Readonly<Record<string, string>>
  readonly timeoutS: number
  readonly metadata: Readonly<Record<string, unknown>>
  /** The digest of everything that the score depends on. */
  readonly digest: string
}

/** A task, or the reason for which it needs a container. */
type ReadTask =
  | { readonly _tag: "Task"; readonly task: HarborTask }
  | { readonly _tag: "NeedsContainer"; readonly error: ConfigError }

const Variables = Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
const TaskToml = Schema.Struct({
  metadata: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  environment: Schema.optionalKey(Schema.Struct({ env: Variables, workdir: Schema.optionalKey(Schema.String) })),
  verifier: Schema.optionalKey(
    Schema.Struct({
      timeout_sec: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0))),
      env: Variables,
    }),
  ),
})
const decodeToml = Schema.decodeUnknownEffect(TaskToml)

/** The seconds that a verifier has if the task does not say it. */
const usualSeconds = 600

/** Folders of the computer itself, which a task must not use as its working directory. */
const systemFolder =
  /^\/(bin|boot|dev|etc|home|lib\w*|logs|mnt|opt|proc|root|run|sbin|srv|sys|tests|tmp|usr|var)?(\/|$)/

/** Tells whether a path is a folder or lies in it. */
export const isInside = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)

const advice = "play it with Harbor, or set needs_container: leave_out"

/** Reads a file of a task, if there is one. */
const textAt = Effect.fnUntraced(function* (path: string) {
  yield* refuseLink(path)
  if (!(yield* exists(path))) return undefined
  return yield* Effect.mapError(readText(path, mostBytes.config), ({ message }) =>
    ConfigError.at({ source: path }, "", message),
  )
})

const required = Effect.fnUntraced(function* (path: string, what: string) {
  const text = yield* textAt(path)
  if (text !== undefined && text.trim() !== "") return text
  return yield* ConfigError.at(
    { source: path },
    "",
    `expected ${what}, found ${text === undefined ? "no file" : "nothing"}`,
  )
})

/** Returns the first need of a container among the files of a task. */
const needOf = Effect.fnUntraced(function* (
  testFiles: ReadonlyArray<FolderFile>,
  names: ReadonlyArray<string>,
): Effect.fn.Return<ContainerNeed | undefined> {
  const compose = names.find((name) => /^(docker-)?compose\.ya?ml$/.test(name))
  if (compose !== undefined)
    return { file: `environment/${compose}`, key: "", why: "it describes the containers of the task" }
  if (testFiles.some(({ path }) => path === "Dockerfile"))
    return { file: "tests/Dockerfile", key: "", why: "it is the image of the verifier" }
  for (const { path, bytes } of testFiles) {
    if (!path.endsWith(".sh")) continue
    const need = needInScript(`tests/${path}`, utf8.decode(bytes))
    if (need !== undefined) return need
  }
  return undefined
})

/** Reads the task in a folder. */
export const readTask = Effect.fnUntraced(function* (
  folder: string,
): Effect.fn.Return<ReadTask, ConfigError, FileSystem.FileSystem | Path.Path> {
  const paths = yield* Path.Path
  const at = (...parts: ReadonlyArray<string>): string => paths.join(folder, ...parts)
  const needed = ({ file, line, key, why }: ContainerNeed): ReadTask => {
    const source = line === undefined ? at(file) : `${at(file)}:${line}`
    return {
      _tag: "NeedsContainer",
      error: ConfigError.at({ source }, key, `the task needs a container: ${why}; ${advice}`),
    }
  }
  const text = yield* required(at("task.toml"), "the settings of a task")
  const { value, keyLineOf } = yield* readTomlText(text, at("task.toml"))
  const inSettings = needInSettings(value, keyLineOf)
  if (inSettings !== undefined) return needed(inSettings)
  const toml = yield* Effect.mapError(decodeToml(value), ({ message }) =>
    ConfigError.at({ source: at("task.toml") }, "", oneLine(message)),
  )
  const recipe = yield* textAt(at("environment", "Dockerfile"))
  const image = recipe === undefined ? { workdir: null, copies: [] } : readDockerfile(recipe)
  if ("why" in image) return needed(image)
  const instruction = yield* required(at("instruction.md"), "what the agent has to do")
  yield* required(at("tests", "test.sh"), "the script of the verifier")
  const testFiles = yield* filesOf(at("tests"))
  const environmentFiles = yield* filesOf(at("environment"))
  const need = yield* needOf(testFiles, yield* namesIn(at("environment")))
  if (need !== undefined) return needed(need)
  const { environment = {}, verifier = {}, metadata = {} } = toml
  const workdir = paths.normalize(environment.workdir ?? image.workdir ?? "/app").replace(/(?<=.)\/$/, "")
  if (systemFolder.test(workdir) || !/^(\/[\w.-]+)+$/.test(workdir)) {
    const why = `its working directory ${JSON.stringify(workdir)} is a folder of the computer itself`
    return needed({ file: "task.toml", key: "environment.workdir", why })
  }
  const outside = image.copies.find(({ to, workdir: from }) => !isInside(paths.resolve(from, to), workdir))
  if (outside !== undefined) {
    const why = `it copies to ${outside.to}, outside of the working directory ${workdir}`
    return needed({ file: "environment/Dockerfile", line: outside.line, key: "", why })
  }
  const variables = { ...environment.env, ...verifier.env }
  const timeoutS = verifier.timeout_sec ?? usualSeconds
  const hashed = (files: ReadonlyArray<FolderFile>) =>
    Effect.forEach(files, (file) => Effect.map(sha256(file.bytes), (digest) => [file.path, digest]))
  const files = [yield* hashed(environmentFiles), yield* hashed(testFiles)]
  const digest = yield* sha256(utf8.encode(JSON.stringify([instruction, workdir, image.copies, variables, ...files])))
  const { copies } = image
  const task = { instruction, workdir, copies, environmentFiles, testFiles, variables, timeoutS, metadata, digest }
  return { _tag: "Task", task: { id: paths.basename(folder), ...task } }
})

/** Returns the folders of tasks at a path: the path itself, or the folders in it, in the order of their names. */
export const taskFolders = Effect.fnUntraced(function* (path: string) {
  const paths = yield* Path.Path
  const isTask = (folder: string) => exists(paths.join(folder, "task.toml"))
  if (yield* isTask(path)) return [path]
  const folders = (yield* namesIn(path)).toSorted().map((name) => paths.join(path, name))
  return yield* Effect.filter(folders, isTask)
})
