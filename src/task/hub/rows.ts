/**
 * Converts a downloaded file of records to JSON Lines: Parquet, JSON Lines, a JSON list, CSV or TSV, also compressed by
 * gzip. The lines are the same for the same file on every machine, so that their digest is, too.
 */
import { Effect, Schema, Stream } from "effect"
import { isPlain } from "../../config/Config.ts"
import { mostBytes } from "../../config/files.ts"
import { messageOf, parsedJson } from "../../config/text.ts"
import { utf8 } from "../../config/utf8.ts"
import { gunzip } from "../../formats/gzip.ts"
import { fieldsOf } from "../../formats/csv.ts"
import { fromCsv, fromJson, headerProblem, type Parsed } from "../data/Records.ts"
import { RecordScanner } from "../data/RecordScanner.ts"
import { DatasetError } from "../TaskSet.ts"

const form = /\.(parquet|jsonl|ndjson|json|csv|tsv)(\.gz)?$/i

/** Tells whether a file's name is one of a form that `linesOf` reads. */
export const isReadable = (path: string): boolean => form.test(path)

/** The number of Parquet rows that are decoded at once. */
const rowsAtOnce = 4096

const base64 = Schema.encodeSync(Schema.Uint8ArrayFromBase64)

/** Converts what Parquet holds and JSON does not: large integers become text if a number would round them. */
const replaced = (_key: string, value: unknown): unknown => {
  if (typeof value === "bigint") {
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : String(value)
  }
  if (value instanceof Uint8Array) return base64(value)
  return value instanceof Float32Array || value instanceof Float64Array ? Array.from(value) : value
}

const lineOf = (row: unknown): string => `${JSON.stringify(row, replaced)}\n`

const parquetLines = (bytes: Uint8Array, failed: (problem: string) => DatasetError) =>
  Stream.unwrap(
    Effect.gen(function* () {
      // Most runs read no Parquet file, so the modules are loaded for the first one.
      const [{ parquetMetadataAsync, parquetReadObjects }, { compressors }] = yield* Effect.promise(() =>
        Promise.all([import("hyparquet"), import("hyparquet-compressors")]),
      )
      const file = {
        byteLength: bytes.length,
        slice: (start: number, end?: number): ArrayBuffer => Uint8Array.from(bytes.subarray(start, end)).buffer,
      }
      const reading = <A>(read: () => Promise<A>) =>
        Effect.tryPromise({ try: read, catch: (error) => failed(`the Parquet file is damaged: ${messageOf(error)}`) })
      const metadata = yield* reading(() => parquetMetadataAsync(file))
      const size = Number(metadata.num_rows)
      const starts = Array.from({ length: Math.ceil(size / rowsAtOnce) }, (_, part) => part * rowsAtOnce)
      return Stream.mapEffect(Stream.fromIterable(starts), (rowStart) =>
        Effect.map(
          reading(() =>
            parquetReadObjects({
              file,
              metadata,
              compressors,
              rowStart,
              rowEnd: Math.min(size, rowStart + rowsAtOnce),
            }),
          ),
          (rows) => utf8.encode(rows.map(lineOf).join("")),
        ),
      )
    }),
  )

/** The number of characters that are encoded at once, since a text has a largest length. */
const charactersAtOnce = 2 ** 20

/** Converts the records of text, one by one; a problem is preceded by its line. */
const textLines = (
  bytes: Uint8Array,
  separator: string | null,
): ReadonlyArray<Uint8Array> | { readonly problem: string } => {
  const chunks: Array<Uint8Array> = []
  let pending = ""
  let names: ReadonlyArray<string> | undefined
  const scanner = new RecordScanner(separator !== null, (record, _offset, line) => {
    let text: string
    try {
      text = utf8.decodeStrict(record)
    } catch {
      return `:${line}: expected UTF-8, found other bytes`
    }
    let parsed: Parsed
    if (separator === null) parsed = fromJson(text, line)
    else if (names === undefined) {
      const header = fieldsOf(text, separator, line)
      if ("problem" in header) return `:${header.line}: ${header.problem}`
      names = header
      const problem = headerProblem(header)
      return problem === undefined ? undefined : `:${line}: ${problem}`
    } else parsed = fromCsv(text, line, separator, names)
    if ("problem" in parsed) return `:${parsed.line}: ${parsed.problem}`
    pending += lineOf(parsed.fields)
    if (pending.length >= charactersAtOnce) {
      chunks.push(utf8.encode(pending))
      pending = ""
    }
    return undefined
  })
  const problem = scanner.push(bytes) ?? scanner.end()
  return problem === undefined ? [...chunks, utf8.encode(pending)] : { problem }
}

/** Converts a list of objects in one JSON text; undefined if it is none. */
const listLines = (bytes: Uint8Array): ReadonlyArray<Uint8Array> | undefined => {
  if (bytes.length > mostBytes.text) return undefined
  const value = parsedJson(utf8.decode(bytes))
  return Array.isArray(value) && value.every(isPlain) ? value.map((row) => utf8.encode(lineOf(row))) : undefined
}

/** Streams the records of a file as bytes of JSON Lines. `name` is the file's name with that of its data set. */
export const linesOf = (
  name: string,
  path: string,
  downloaded: Uint8Array,
): Stream.Stream<Uint8Array, DatasetError> => {
  const failed = (problem: string): DatasetError => new DatasetError({ path: name, message: `${name}${problem}` })
  const [, kind = "", zipped] = form.exec(path) ?? []
  const unpacked =
    zipped === undefined
      ? Effect.succeed(downloaded)
      : Effect.mapError(gunzip(downloaded), () => failed(": the gzip file is damaged"))
  return Stream.unwrap(
    Effect.map(unpacked, (bytes) => {
      const extension = kind.toLowerCase()
      if (extension === "parquet") return parquetLines(bytes, (problem) => failed(`: ${problem}`))
      const list = extension === "json" ? listLines(bytes) : undefined
      const separator = extension === "csv" ? "," : extension === "tsv" ? "\t" : null
      const chunks = list ?? textLines(bytes, separator)
      return "problem" in chunks ? Stream.fail(failed(chunks.problem)) : Stream.fromIterable(chunks)
    }),
  )
}
