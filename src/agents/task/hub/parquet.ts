/**
 * Converts Parquet files to rows. A small file can claim to contain more data than fits in memory: a page of equal values
 * needs only a few bytes, and a compressed page a thousandth of its size. So all claimed sizes are added up before anything
 * is decoded.
 */
import { Effect, Stream } from "effect"
import type { ColumnMetaData, Compressors, FileMetaData, PageHeader } from "hyparquet"
import type { decompressPage, readDataPage, readDataPageV2 } from "hyparquet/src/datapage.js"
import type { DEFAULT_PARSERS } from "hyparquet/src/convert.js"
import type { getSchemaPath } from "hyparquet/src/schema.js"
import { messageOf } from "../../../base/text/text.ts"
import { unpack } from "../../../base/formats/gzip.ts"

/** The largest number of unpacked bytes, and of values, that a file's pages may have. */
interface ParquetLimits {
  readonly bytes: number
  readonly values: number
}

/** The number of rows that are converted at once. */
const rowsAtOnce = 4096

/** The number of bytes of a page's header that are read first. A header is longer only if it has long statistics. */
const headerBytes = 64 * 1024

type Row = Readonly<Record<string, unknown>>
type Failed<E> = (problem: string) => E

/**
 * The encoding whose values begin with a part of the previous value, so that a small page can contain texts of any length.
 */
const byPrefix = "DELTA_BYTE_ARRAY"

/** Reads the header of a page, and moves the reader to the page's data. */
type ReadHeader = (reader: { view: DataView; offset: number }) => PageHeader

/** A page in a format whose decoder has no limit of size. */
interface PackedPage {
  readonly format: "gzip" | "brotli"
  readonly bytes: Uint8Array
  /** The number of bytes that the unpacked page has, according to its header. */
  readonly size: number
}

/** A page whose values share prefixes with the values before them. */
interface PrefixedPage {
  readonly bytes: Uint8Array
  readonly header: PageHeader
  readonly column: ColumnMetaData
}

interface Claims {
  readonly pages: ReadonlyArray<PackedPage>
  readonly prefixed: ReadonlyArray<PrefixedPage>
  /** The number of bytes of all unpacked pages. */
  readonly unpacked: number
}

/** The formats whose decoders, in the library, do not stop at the claimed size. The decoders of other formats do. */
const unlimited: Readonly<Record<string, PackedPage["format"]>> = { GZIP: "gzip", BROTLI: "brotli" }

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0

/**
 * Adds up the sizes that a file claims. Returns a problem if they are too large or impossible. Otherwise returns the pages
 * that must be unpacked to check their claims, and those whose values depend on prefixes.
 */
const claimsOf = (
  bytes: Uint8Array,
  { num_rows, row_groups }: FileMetaData,
  readHeader: ReadHeader,
  limits: ParquetLimits,
): string | Claims => {
  const pages: Array<PackedPage> = []
  const prefixed: Array<PrefixedPage> = []
  let values = 0
  let unpacked = 0
  let rows = 0
  for (const group of row_groups) {
    const groupRows = Number(group.num_rows)
    if (!isCount(groupRows)) return `expected a number of rows, found ${group.num_rows}`
    rows += groupRows
    // Each row becomes an object with a key for each column, even if pages have fewer values.
    if (rows * Math.max(1, group.columns.length) > limits.values) return tooMany("values", limits.values)
    for (const { meta_data: column } of group.columns) {
      if (column === undefined) return "expected the metadata of each column"
      const first = Number(column.dictionary_page_offset ?? column.data_page_offset)
      const start = Math.min(first > 0 ? first : Infinity, Number(column.data_page_offset))
      const end = start + Number(column.total_compressed_size)
      if (!isCount(start) || !isCount(end) || end > bytes.length) return "expected columns within the file"
      let at = start
      while (at < end - 1) {
        const view = new DataView(bytes.buffer, bytes.byteOffset + at, Math.min(end - at, headerBytes))
        const reader = { view, offset: 0 }
        const header = readHeader(reader)
        const { compressed_page_size: packed, uncompressed_page_size: size } = header
        if (!isCount(packed) || !isCount(size)) return "expected sizes of pages that are no less than 0"
        const page = header.data_page_header ?? header.data_page_header_v2 ?? header.dictionary_page_header
        const count = page?.num_values ?? 0
        if (!isCount(count)) return `expected a number of values, found ${count}`
        values += count
        unpacked += size
        if (values > limits.values) return tooMany("values", limits.values)
        if (unpacked > limits.bytes) return tooMany("bytes of unpacked pages", limits.bytes)
        const format = unlimited[column.codec]
        const { data_page_header_v2: second } = header
        // The levels of such a page precede its values, and are never compressed.
        const levels = (second?.repetition_levels_byte_length ?? 0) + (second?.definition_levels_byte_length ?? 0)
        if (format !== undefined && packed > 0 && second?.is_compressed !== false) {
          const from = at + reader.offset
          pages.push({ format, bytes: bytes.subarray(from + levels, from + packed), size: size - levels })
        }
        if ((header.data_page_header ?? second)?.encoding === byPrefix) {
          const from = at + reader.offset
          prefixed.push({ bytes: bytes.subarray(from, from + packed), header, column })
        }
        at += reader.offset + packed
      }
    }
  }
  return rows === Number(num_rows)
    ? { pages, prefixed, unpacked }
    : `expected ${num_rows} rows in its groups, found ${rows}`
}

/** Returns what is wrong with a page if its unpacked size differs from the claimed one. */
const pageProblem = ({ format, bytes, size }: PackedPage): Effect.Effect<string | undefined> =>
  Effect.match(unpack(bytes, format, size), {
    onSuccess: ({ length }) =>
      length === size
        ? undefined
        : `expected a page of ${size} bytes when unpacked, found ${length > size ? "more" : length}`,
    onFailure: (error) => `cannot unpack a page by ${format}: ${messageOf(error)}`,
  })

/** Adds up the characters that a page's values repeat from the previous values. The page begins with these numbers. */
const repeatedIn = (
  { bytes, header, column }: PrefixedPage,
  schema: FileMetaData["schema"],
  library: Library,
): number => {
  const { codec, path_in_schema: path } = column
  const { compressors, parsers } = library
  const schemaPath = library.getSchemaPath(schema, [...path])
  const element = schemaPath[schemaPath.length - 1].element
  const decoder = {
    pathInSchema: path,
    type: "INT32",
    element,
    schemaPath,
    codec,
    compressors,
    parsers,
  } as const
  const { data_page_header: first, data_page_header_v2: second } = header
  const asNumbers = "DELTA_BINARY_PACKED"
  const lengths =
    second !== undefined
      ? library.readDataPageV2(bytes, { ...header, data_page_header_v2: { ...second, encoding: asNumbers } }, decoder)
      : first !== undefined
        ? library.readDataPage(
            library.decompressPage(bytes, header.uncompressed_page_size, codec, compressors),
            { ...first, encoding: asNumbers },
            decoder,
          )
        : undefined
  return Array.from(lengths?.dataPage ?? [], Number).reduce((sum, length) => sum + Math.max(0, length), 0)
}

/** The functions of the library that read single pages. */
interface Library {
  readonly compressors: Compressors
  readonly parsers: typeof DEFAULT_PARSERS
  readonly getSchemaPath: typeof getSchemaPath
  readonly decompressPage: typeof decompressPage
  readonly readDataPage: typeof readDataPage
  readonly readDataPageV2: typeof readDataPageV2
}

const tooMany = (what: string, limit: number): string =>
  `it claims to hold more than ${limit} ${what}, too many for a file of its size`

/** The modules that read Parquet files are loaded only for the first file, because most runs read none. */
const libraries = Effect.promise(async () => {
  const [{ parquetMetadataAsync, parquetRead, parquetSchema }, { parquetHeader }, dataPage, ...others] =
    await Promise.all([
      import("hyparquet"),
      import("hyparquet/src/column.js"),
      import("hyparquet/src/datapage.js"),
      import("hyparquet/src/schema.js"),
      import("hyparquet/src/convert.js"),
      import("hyparquet-compressors"),
    ])
  const [{ getSchemaPath }, { DEFAULT_PARSERS }, { compressors, decompressZstd }] = others
  const ofPages = { parquetHeader, dataPage, getSchemaPath, DEFAULT_PARSERS, compressors, decompressZstd }
  return { parquetMetadataAsync, parquetRead, parquetSchema, ...ofPages }
})

/** Streams the rows of a file in groups, as they are in memory anyway. */
export const parquetRows = <E>(
  bytes: Uint8Array,
  limits: ParquetLimits,
  failed: Failed<E>,
): Stream.Stream<ReadonlyArray<Row>, E> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { parquetMetadataAsync, parquetRead, parquetSchema, parquetHeader, ...rest } = yield* libraries
      const { dataPage, getSchemaPath, DEFAULT_PARSERS, compressors, decompressZstd } = rest
      const file = {
        byteLength: bytes.length,
        slice: (start: number, end?: number): ArrayBuffer => Uint8Array.from(bytes.subarray(start, end)).buffer,
      }
      const damaged = (error: unknown): E => failed(`the Parquet file is damaged: ${messageOf(error)}`)
      const reading = <A>(read: () => Promise<A>) => Effect.tryPromise({ try: read, catch: damaged })
      const metadata = yield* reading(() => parquetMetadataAsync(file))
      const refuse = (problem: string) => Effect.fail(failed(`the Parquet file is damaged: ${problem}`))
      const claims = yield* Effect.try({
        try: () => claimsOf(bytes, metadata, parquetHeader, limits),
        catch: damaged,
      })
      if (typeof claims === "string") return yield* refuse(claims)
      for (const page of claims.pages) {
        const problem = yield* pageProblem(page)
        if (problem !== undefined) return yield* refuse(problem)
      }
      // Without a buffer of the claimed size, the decoder would make one of any size that the data require.
      const bounded = {
        ...compressors,
        ZSTD: (input: Uint8Array, length: number) => decompressZstd(input, new Uint8Array(length)),
      }
      const library: Library = { ...dataPage, getSchemaPath, parsers: DEFAULT_PARSERS, compressors: bounded }
      let { unpacked } = claims
      for (const page of claims.prefixed) {
        unpacked += yield* Effect.try({ try: () => repeatedIn(page, metadata.schema, library), catch: damaged })
        if (unpacked > limits.bytes) return yield* refuse(tooMany("bytes of unpacked pages", limits.bytes))
      }
      const names = parquetSchema(metadata).children.map(({ element }) => element.name)
      /** Decodes each column of a row group once. */
      const columnsOf = (rowStart: number, rowEnd: number) =>
        reading(async () => {
          const columns = new Map<string, Array<{ readonly from: number; readonly data: ArrayLike<unknown> }>>()
          await parquetRead({
            file,
            metadata,
            compressors: bounded,
            rowStart,
            rowEnd,
            onChunk: ({ columnName, columnData, rowStart: from }) => {
              columns.set(columnName, [...(columns.get(columnName) ?? []), { from, data: columnData }])
            },
          })
          return columns
        })
      const groups = metadata.row_groups.map(({ num_rows }) => Number(num_rows))
      let before = 0
      const ranges = groups.map((rows) => ({ from: before, to: (before += rows) }))
      return Stream.flatMap(Stream.fromIterable(ranges.filter(({ from, to }) => to > from)), (range) =>
        Stream.unwrap(Effect.map(columnsOf(range.from, range.to), (columns) => rowsOf(columns, names, range))),
      )
    }),
  )

/** The decoded values of columns, by name, in parts. `from` is the first row of a part. */
type DecodedColumns = ReadonlyMap<string, ReadonlyArray<{ readonly from: number; readonly data: ArrayLike<unknown> }>>

/** Streams the rows of a row group, `rowsAtOnce` at a time. */
const rowsOf = (
  columns: DecodedColumns,
  names: ReadonlyArray<string>,
  { from, to }: { readonly from: number; readonly to: number },
): Stream.Stream<ReadonlyArray<Row>> => {
  const read = names
    .filter((name) => columns.has(name))
    .map((name) => ({ name, valueAt: reader(columns.get(name) ?? []) }))
  const starts = Array.from({ length: Math.ceil((to - from) / rowsAtOnce) }, (_, part) => from + part * rowsAtOnce)
  return Stream.map(Stream.fromIterable(starts), (start) =>
    Array.from({ length: Math.min(rowsAtOnce, to - start) }, (_, index): Row =>
      Object.fromEntries(read.map(({ name, valueAt }) => [name, valueAt(start + index)])),
    ),
  )
}

/** Returns a function that returns a column's value in a row. It must be called with rows in ascending order. */
const reader = (chunks: ReadonlyArray<{ readonly from: number; readonly data: ArrayLike<unknown> }>) => {
  let chunk = 0
  return (row: number): unknown => {
    while (chunk < chunks.length - 1 && row >= chunks[chunk].from + chunks[chunk].data.length) chunk++
    const { from, data } = chunks[chunk] ?? { from: 0, data: [] }
    return data[row - from]
  }
}
