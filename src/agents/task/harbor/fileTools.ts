/** Makes the tools with which an agent works in the scratch folder of a Harbor task: it lists, reads and writes files. */
import { type Context, Effect, Path, Schema } from "effect"
import { readText } from "../../../base/files/files.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import * as Tool from "../../agent/Tool.ts"
import { filesOf, folderLimits, workdirLimits, writeInto } from "./folderFiles.ts"
import { type Files, placeOf, type PlacedFolder } from "./scratch.ts"

/** The largest files that an agent can read and write. */
const mostFileBytes = 2 ** 20

const FileParameters = Schema.Struct({ path: Schema.NonEmptyString })

/** Makes the tools of an episode. */
export const fileTools = (place: PlacedFolder, context: Context.Context<Files>): ReadonlyArray<Tool.Tool> => {
  const { workdir } = place
  const written = { files: 0, bytes: 0 }
  const placed = <A>(
    path: string,
    work: (whole: string) => Effect.Effect<A, string, Files>,
  ): Effect.Effect<A, string> =>
    Effect.gen(function* () {
      const whole = placeOf(yield* Path.Path, place, path)
      if (whole === undefined) return yield* Effect.fail(`${path}: expected a path in ${workdir}`)
      return yield* work(whole)
    }).pipe(Effect.provideContext(context))
  const message = ({ message }: { readonly message: string }): string => message
  return [
    Tool.make({
      name: "list_files",
      description: `Lists the files in ${workdir}.`,
      parameters: Schema.Struct({}),
      run: () =>
        placed(workdir, (whole) =>
          Effect.map(
            Effect.mapError(filesOf(whole, workdirLimits), message),
            (files) => files.map(({ path }) => path).join("\n") || "none",
          ),
        ),
    }),
    Tool.make({
      name: "read_file",
      description: `Returns the text of a file in ${workdir}.`,
      parameters: FileParameters,
      run: ({ path }) => placed(path, (whole) => Effect.mapError(readText(whole, mostFileBytes), message)),
    }),
    Tool.make({
      name: "write_file",
      description: `Writes a file in ${workdir}, and replaces an earlier one.`,
      parameters: Schema.Struct({
        ...FileParameters.fields,
        text: Schema.String.check(Schema.isMaxLength(mostFileBytes)),
      }),
      run: ({ path, text }) =>
        placed(path, (whole) => {
          const bytes = utf8.encode(text)
          const { files: mostFiles, bytes: mostBytes } = folderLimits
          if (written.files + 1 > mostFiles) return Effect.fail(`no more than ${mostFiles} files can be written`)
          if (written.bytes + bytes.length > mostBytes)
            return Effect.fail(`no more than ${mostBytes} bytes can be written`)
          written.files++
          written.bytes += bytes.length
          return Effect.as(writeInto(whole, bytes), `${path} is written.`)
        }),
    }),
  ]
}
