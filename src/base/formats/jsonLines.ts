/**
 * Reads files with one JSON value per line as streams, so that only the current line is in memory: `linesOf` reads the
 * lines of a file, and `valueOf` decodes a line by a Schema. The readers of rollouts, samples and scores use them.
 */
import { Effect, FileSystem, type PlatformError, Schema, SchemaIssue, Stream } from "effect"
import { joined } from "../text/bytes.ts"
import { display } from "../config/Config.ts"
import { checkFile, type FileError } from "../files/files.ts"
import { jsonValue, oneLine } from "../text/text.ts"
import { utf8 } from "../text/utf8.ts"
import { FormatError } from "./FormatError.ts"

const lineFeed = 10

/** A line of a file, without its end. */
export interface JsonLine {
  readonly bytes: Uint8Array
  /** The number of the line in the file, from 1. */
  readonly number: number
  /** The offset in the file of the first byte after the line and its line end. */
  readonly end: number
  /** Whether the line has a line end. A file's last line may lack it, if the program that wrote it was stopped. */
  readonly whole: boolean
}

/** Splits a stream of bytes into lines. Empty lines are left out, but counted in the lines' numbers. */
export const lines = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Stream.Stream<JsonLine, E, R> =>
  Stream.mapAccumArray(
    bytes,
    () => ({ parts: new Array<Uint8Array>(), number: 1, end: 0 }),
    ({ parts, number, end }, chunks) => {
      const complete: Array<JsonLine> = []
      for (const chunk of chunks) {
        let from = 0
        for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, from)) {
          const rest = chunk.subarray(from, at)
          const line = parts.length === 0 ? rest : joined([...parts, rest])
          end += line.length + 1
          if (line.length > 0) complete.push({ bytes: line, number, end, whole: true })
          number++
          parts = []
          from = at + 1
        }
        if (from < chunk.length) parts = [...parts, chunk.slice(from)]
      }
      return [{ parts, number, end }, complete]
    },
    {
      onHalt: ({ parts, number, end }) => {
        const line = joined(parts)
        return line.length === 0 ? [] : [{ bytes: line, number, end: end + line.length, whole: false }]
      },
    },
  )

const unreadable = (path: string, error: PlatformError.PlatformError | FileError): FormatError => {
  const missing = "missing" in error ? error.missing : error.reason._tag === "NotFound"
  const problem = missing ? "there is no such file" : `cannot be read: ${oneLine(error.message)}`
  return new FormatError({ path, message: `${path}: ${problem}` })
}

/** Reads the lines of a file, of any size. Fails if the file is missing or cannot be read. */
export const linesOf = (path: string): Stream.Stream<JsonLine, FormatError, FileSystem.FileSystem> =>
  Stream.unwrap(
    Effect.map(FileSystem.FileSystem, (fs) =>
      Stream.fromEffectDrain(checkFile(path, Infinity)).pipe(
        Stream.concat(lines(fs.stream(path, { chunkSize: 256 * 1024 }))),
        Stream.mapError((error) => unreadable(path, error)),
      ),
    ),
  )

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

const valueAt = (input: unknown, keys: ReadonlyArray<PropertyKey>): unknown =>
  keys.reduce<unknown>(
    (value, key) => (typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined),
    input,
  )

const jsonOf = (bytes: Uint8Array): { readonly value: unknown } | { readonly problem: string } => {
  let text: string
  try {
    text = utf8.decodeStrict(bytes)
  } catch {
    return { problem: "expected UTF-8, found other bytes" }
  }
  try {
    return { value: jsonValue(text) }
  } catch (error) {
    return { problem: error instanceof RangeError ? error.message : `expected JSON, found ${display(text)}` }
  }
}

/** Makes a function that parses a line as JSON and decodes it by `schema`. Its error names file, line and wrong key. */
export const valueOf = <S extends Schema.Codec<unknown, unknown>>(
  schema: S,
): ((path: string, line: JsonLine) => Effect.Effect<S["Type"], FormatError>) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (path, { bytes, number, whole }) => {
    const wrong = (problem: string) => {
      const cut = whole ? "" : "; the file ends within this line"
      return new FormatError({ path, line: number, message: `${path}:${number}: ${problem}${cut}` })
    }
    const json = jsonOf(bytes)
    if ("problem" in json) return Effect.fail(wrong(json.problem))
    return Effect.mapError(decode(json.value), ({ issue }) => {
      const [first] = issuesOf(issue).issues
      const keys = (first.path ?? []).map((part) => (typeof part === "object" ? part.key : part))
      const where = keys.length === 0 ? "" : `${keys.map(String).join(".")}: `
      const expected = oneLine(first.message.charAt(0).toLowerCase() + first.message.slice(1))
      return wrong(`${where}${expected}, found ${display(valueAt(json.value, keys))}`)
    })
  }
}
