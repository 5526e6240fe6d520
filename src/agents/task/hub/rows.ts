/**
 * Converts a downloaded file of records (Parquet, JSON Lines, a JSON list, CSV or TSV, possibly compressed with gzip) to JSON
 * Lines. The same file gives the same lines on every machine, and so the same digest.
 */
import { Effect, Schema, Stream } from "effect"
import { isPlain } from "../../../base/config/Config.ts"
import { parsedJson } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { gunzip, mostUnpacked } from "../../../base/formats/gzip.ts"
import { fieldsOf } from "../../../base/formats/csv.ts"
import { fromCsv, fromJson, headerProblem, type Parsed } from "../data/Records.ts"
import { mostRecordBytes, RecordScanner } from "../data/RecordScanner.ts"
import { DatasetError } from "../TaskSet.ts"
import { eachItem } from "./jsonList.ts"
import { parquetRows } from "./parquet.ts"

const form = /\.(parquet|jsonl|ndjson|json|csv|tsv)(\.gz)?$/i

/** Tells whether a file's name has a format that `linesOf` can read. */
export const isReadable = (path: string): boolean => form.test(path)

/** The largest size in bytes of an unpacked file, and of the JSON Lines of a file. */
const mostFileBytes = 4 * 2 ** 30 - 1

/** The limit of values in a Parquet file, per byte of the file, and the number that is always allowed. */
const valuesPerByte = 16
const alwaysAllowed = 2 ** 24

const base64 = Schema.encodeSync(Schema.Uint8ArrayFromBase64)

/** Replaces values that Parquet has but JSON does not: large integers become text if a number would round them. */
const replaced = (_key: string, value: unknown): unknown => {
  if (typeof value === "bigint") {
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : String(value)
  }
  if (value instanceof Uint8Array) return base64(value)
  return value instanceof Float32Array || value instanceof Float64Array ? Array.from(value) : value
}

/** The number of records that is always allowed. A larger file may have one record per downloaded byte. */
const recordsAllowed = 2 ** 20

const tooManyRecords = (most: number): string => `: expected at most ${most} records in a file of its size, found more`

interface Problem {
  readonly problem: string
}

/** The largest depth of nested lists and objects. Deeper ones would overflow the stack when they are encoded. */
const mostDepth = 500

const isDeeper = (value: unknown, depth: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (depth === 0 || Object.values(value).some((inner) => isDeeper(inner, depth - 1)))

const lineOf = (row: unknown): string => `${JSON.stringify(row, replaced)}\n`

/** The number of characters that are encoded at once, because the length of a text is limited. */
const charactersAtOnce = 2 ** 20

/** Joins lines to chunks of bytes. */
class LineChunks {
  private readonly chunks: Array<Uint8Array> = []
  private pending: Array<string> = []
  private length = 0

  push(line: string): void {
    this.pending.push(line)
    this.length += line.length
    if (this.length >= charactersAtOnce) this.flush()
  }

  end(): ReadonlyArray<Uint8Array> {
    this.flush()
    return this.chunks
  }

  private flush(): void {
    this.chunks.push(utf8.encode(this.pending.join("")))
    this.pending = []
    this.length = 0
  }
}

/** Converts the records in a text, one by one. A problem begins with its line. */
const textLines = (bytes: Uint8Array, separator: string | null, most: number): ReadonlyArray<Uint8Array> | Problem => {
  let count = 0
  const lines = new LineChunks()
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
    if (isDeeper(parsed.fields, mostDepth)) return `:${line}: expected values nested at most ${mostDepth} deep`
    lines.push(lineOf(parsed.fields))
    return ++count <= most ? undefined : tooManyRecords(most)
  })
  const problem = scanner.push(bytes) ?? scanner.end()
  return problem === undefined ? lines.end() : { problem }
}

/** Converts a JSON text that is a list of objects; undefined for other texts. */
const listLines = (bytes: Uint8Array, most: number): ReadonlyArray<Uint8Array> | Problem | undefined => {
  const lines = new LineChunks()
  let count = 0
  const isList = eachItem(bytes, (item) => {
    const row = item.length > mostRecordBytes ? undefined : parsedJson(utf8.decode(item))
    if (!isPlain(row) || isDeeper(row, mostDepth)) return false
    lines.push(lineOf(row))
    return ++count <= most
  })
  if (count > most) return { problem: tooManyRecords(most) }
  return isList ? lines.end() : undefined
}

/**
 * Converts the rows of a Parquet file to JSON Lines. A value that many rows share is written once for each, so the written
 * bytes are limited, too.
 */
const parquetLines = (bytes: Uint8Array, failed: (problem: string) => DatasetError) => {
  const limits = {
    bytes: mostUnpacked(bytes.length, mostFileBytes),
    values: Math.max(alwaysAllowed, valuesPerByte * bytes.length),
  }
  let written = 0
  return parquetRows(bytes, limits, failed).pipe(
    Stream.mapEffect((rows) => {
      const lines = new LineChunks()
      for (const row of rows) {
        const line = lineOf(row)
        written += line.length
        if (written > limits.bytes) {
          return Effect.fail(
            failed(`its rows have more than ${limits.bytes} bytes as JSON, too many for a file of its size`),
          )
        }
        lines.push(line)
      }
      return Effect.succeed(lines.end())
    }),
    Stream.flatMap(Stream.fromIterable),
  )
}

/** Streams the records of a file as bytes of JSON Lines. `name` is the data set with the name of the file, for messages. */
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
      : Effect.mapError(gunzip(downloaded, mostUnpacked(downloaded.length, mostFileBytes)), ({ message }) =>
          failed(`: ${message}`),
        )
  return Stream.unwrap(
    Effect.map(unpacked, (bytes) => {
      const extension = kind.toLowerCase()
      if (extension === "parquet") return parquetLines(bytes, (problem) => failed(`: ${problem}`))
      const most = Math.max(recordsAllowed, downloaded.length)
      const list = extension === "json" ? listLines(bytes, most) : undefined
      const separator = extension === "csv" ? "," : extension === "tsv" ? "\t" : null
      const chunks = list ?? textLines(bytes, separator, most)
      return "problem" in chunks ? Stream.fail(failed(chunks.problem)) : Stream.fromIterable(chunks)
    }),
  )
}
