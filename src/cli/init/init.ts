import { Effect, FileSystem, Option, Path, type PlatformError } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { fileURLToPath } from "node:url"
import { makeFolder, systemMessage } from "../../config/files.ts"
import { quoted } from "../flags.ts"
import { files, type Kind, kinds } from "./files.ts"
import { startProject } from "./project.ts"
import { writeOut } from "../output/output.ts"
import { UsageError } from "../output/errors.ts"

const flags = {
  file: Argument.String("file").pipe(
    Argument.optional,
    Argument.withDescription("The file to write: .yaml, or .ts for a program (default: named after its kind)"),
  ),
  kind: Flag.Literals("kind", kinds).pipe(
    Flag.optional,
    Flag.withDescription(
      `${kinds.map((kind) => `${kind}: ${files[kind].about}`).join("; ")}. Default: experiment, or program for a .ts file`,
    ),
  ),
  force: Flag.Boolean("force").pipe(Flag.withDefault(false), Flag.withDescription("Overwrite an existing file")),
}

export const init = Command.make("init", flags, (given) => execute(given)).pipe(
  Command.withDescription("Write a commented file to start from. It runs as it is, without an API key."),
  Command.withShortDescription("Write a file to start from"),
  Command.withExamples([
    { command: "effect init", description: "Write experiment.yaml: an agent that learns from feedback" },
    { command: "effect init quiz.yaml --kind questions", description: "Write an experiment with your own questions" },
    {
      command: "effect init --kind evaluation",
      description: "Write evaluation.yaml: agents compared on the same tasks",
    },
    {
      command: "effect init train.ts",
      description: "Write a reinforcement learning program, with package.json and tsconfig.json in an empty folder",
    },
  ]),
)

type Given = Command.Command.Config.Infer<typeof flags>

const execute = Effect.fnUntraced(function* (
  given: Given,
): Effect.fn.Return<void, UsageError | PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> {
  const [fs, paths] = [yield* FileSystem.FileSystem, yield* Path.Path]
  const kind = yield* kindOf(given)
  const { file: defaultFile, about, command, schema, text } = files[kind]
  const file = Option.getOrElse(given.file, () => defaultFile)
  const folder = paths.dirname(paths.resolve(file))
  const installedSchema = schema === null ? undefined : yield* schemaNear(folder, schema)
  const first = schema === null ? "" : `# yaml-language-server: $schema=${installedSchema ?? schema}\n`
  yield* Effect.mapError(makeFolder(folder), ({ message }) => new UsageError({ message: `${file}: ${message}` }))
  const contents = `${first}${text.replace("FILE_NAME", quoted([file]))}`
  yield* fs.writeFileString(file, contents, { flag: given.force ? "w" : "wx" }).pipe(
    Effect.catchIf(
      (error) => error.reason._tag === "AlreadyExists",
      () => Effect.fail(new UsageError({ message: `${file}: this file exists already; --force overwrites it` })),
    ),
    Effect.catchTag("PlatformError", (error) => {
      return Effect.fail(new UsageError({ message: `${file}: ${systemMessage(error)}` }))
    }),
  )
  // npx keeps packages in a cache, which no file should refer to, so the schema is copied next to the file.
  if (schema !== null && installedSchema === undefined) {
    yield* fs.copyFile(paths.join(packaged, schema), paths.join(folder, schema))
  }
  const working = paths.resolve(".")
  // The printed commands are for the working directory if the file is below it, or else for the file's folder.
  const isBelow = folder === working || folder.startsWith(`${working}${paths.sep}`)
  const place = isBelow ? working : folder
  const checkout = paths.dirname(packaged)
  const { written, install } = yield* startProject(place, { checkout, isProgram: kind === "program" })
  const commands = [
    ...(isBelow || install === undefined ? [] : [`cd ${quoted([place])}`]),
    ...(install === undefined ? [] : [install]),
    `npx effect ${command} ${quoted([isBelow || install === undefined ? file : paths.basename(file)])}`,
  ]
  const project = written.length === 0 ? "" : `wrote ${written.join(" and ")}: there was no package.json\n`
  const steps = commands.map((line) => `  ${line}\n`).join("")
  yield* writeOut(`${project}wrote ${file}: ${about}. Run it with\n\n${steps}`)
})

const kindOf = ({ file, kind }: Given): Effect.Effect<Kind, UsageError> => {
  const name = Option.getOrUndefined(file)
  const isProgram = name !== undefined && /\.[mc]?[tj]s$/.test(name)
  const wanted = Option.getOrElse(kind, (): Kind => (isProgram ? "program" : "experiment"))
  if (name === undefined) return Effect.succeed(wanted)
  const extensions = wanted === "program" ? [".ts", ".mts"] : [".yaml", ".yml"]
  if (extensions.some((extension) => name.endsWith(extension))) return Effect.succeed(wanted)
  const expected = Option.isNone(kind) && !isProgram ? ".yaml, .yml or .ts" : extensions.join(" or ")
  return Effect.fail(new UsageError({ message: `${name}: expected a name that ends in ${expected}` }))
}

const packaged = fileURLToPath(new URL("../../../schemas", import.meta.url))

/**
 * The path of a JSON Schema relative to a folder, from the installed package or from the library's own checkout; undefined
 * if neither is near the folder.
 */
const schemaNear = Effect.fnUntraced(function* (
  folder: string,
  name: string,
): Effect.fn.Return<string | undefined, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> {
  const [fs, paths] = [yield* FileSystem.FileSystem, yield* Path.Path]
  const relative = (to: string): string => paths.relative(folder, to).replaceAll("\\", "/")
  for (let above = folder; ; above = paths.dirname(above)) {
    const installed = paths.join(above, "node_modules/effect-rl/schemas", name)
    if (yield* fs.exists(installed)) return relative(installed)
    if (paths.join(above, "schemas") === packaged) return relative(paths.join(packaged, name))
    if (paths.dirname(above) === above) return undefined
  }
})
