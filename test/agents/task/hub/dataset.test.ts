import { assert, describe, it } from "@effect/vitest"
import { zstdCompressSync } from "node:zlib"
import { ConfigProvider, Effect, FileSystem, Layer, Logger, type Path } from "effect"
import { parquetWriteBuffer } from "hyparquet-writer"
import { gzip } from "../../../../src/base/formats/gzip.ts"
import type { DatasetOpening } from "../../../../src/agents/task/DatasetKind.ts"
import * as Datasets from "../../../../src/agents/task/Datasets.ts"
import { ServerRetries } from "../../../../src/agents/lm/exchange.ts"
import { layer as hubCache } from "../../../../src/agents/task/hub/cache-node.ts"
import { recordsFile } from "../../../../src/agents/task/hub/dataset.ts"
import { disk } from "../../../run/store/disk.ts"
import { answered, lines } from "../opening.ts"
import { type FakeHub, fakeHub, type Fault, type Repository } from "./fakeHub.ts"

const first = "1".repeat(40)
const second = "2".repeat(40)
const converted = "c".repeat(40)

const parquet = (...questions: ReadonlyArray<string>): Uint8Array =>
  new Uint8Array(
    parquetWriteBuffer({
      columnData: [
        { name: "question", data: [...questions], type: "STRING" },
        { name: "answer", data: questions.map((_, index) => BigInt(index)), type: "INT64" },
      ],
    }),
  )

const numbered = (from: number, to: number): ReadonlyArray<string> =>
  Array.from({ length: to - from }, (_, index) => `question ${from + index}`)

const sums: Repository = {
  branches: { main: first },
  commits: {
    [first]: {
      "README.md": "# Sums",
      "main/train-00000-of-00002.parquet": parquet(...numbered(0, 6)),
      "main/train-00001-of-00002.parquet": parquet(...numbered(6, 10)),
      "main/test-00000-of-00001.parquet": parquet("test 0", "test 1"),
      "hard/train.jsonl": lines([{ question: "hard?", answer: "yes" }]),
    },
    [second]: { "main/train-00000-of-00001.parquet": parquet("newer") },
  },
  card: {
    configs: [
      {
        config_name: "main",
        default: true,
        data_files: [
          { split: "train", path: "main/train-*" },
          { split: "test", path: "main/test-*" },
        ],
      },
      { config_name: "hard", data_files: "hard/*.jsonl" },
    ],
  },
}

interface Situation {
  readonly hub: FakeHub
  readonly home: string
  /** Opens a data set with this environment beside the hub's address and the cache. */
  readonly open: (config: object, variables?: Readonly<Record<string, string>>) => DatasetOpening<Datasets.Dataset>
}

/** Does something with a hub, and a cache in a folder of its own. */
const withHub = <A, E>(
  repositories: Readonly<Record<string, Repository>>,
  use: (situation: Situation) => Effect.Effect<A, E, FileSystem.FileSystem | Path.Path>,
  fault?: (path: string, before: number) => Fault | undefined,
) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const hub = yield* fakeHub(repositories, fault)
    const home = yield* Effect.orDie(fs.makeTempDirectoryScoped())
    const open: Situation["open"] = (config, variables = {}) =>
      Datasets.open(config, { baseDir: home, from: { source: "conf.yaml" } }).pipe(
        Effect.provideService(
          ConfigProvider.ConfigProvider,
          ConfigProvider.fromUnknown({ HF_ENDPOINT: hub.url, HF_HOME: home, ...variables }),
        ),
      )
    return yield* use({ hub, home, open })
  }).pipe(
    Effect.provideService(ServerRetries, {
      maxRetries: 2,
      startingDelay: 0,
      backoffFactor: 1,
      maxDelay: 0,
      jitter: 0,
    }),
    Effect.scoped,
    Effect.provide(Layer.merge(disk, hubCache)),
  )

const questions = ({ tasks }: Datasets.Dataset) =>
  Effect.forEach(Array.from({ length: tasks.size }).keys(), (index) =>
    Effect.flatMap(tasks.at(index), (env) => Effect.map(answered(env, ""), ({ question }) => question)),
  )

const problemsOf = (open: Situation["open"], ...configs: ReadonlyArray<object>) =>
  Effect.forEach(configs, (config) => Effect.map(Effect.flip(open(config)), ({ message }) => message))

const filesIn = (folder: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => Effect.orDie(fs.readDirectory(folder, { recursive: true })))

describe("data sets of the hub", () => {
  it.live("are the records of a split, in order, with the commit in the config", () =>
    withHub({ "open/sums": sums }, ({ open, hub }) =>
      Effect.gen(function* () {
        const dataset = yield* open({ hf_dataset: "open/sums" })
        assert.deepStrictEqual(yield* questions(dataset), [...numbered(0, 10)])
        assert.strictEqual(dataset.config["hf_revision"], first)
        assert.strictEqual(dataset.tasks.name, "sums")
        const { feedback } = yield* answered(yield* dataset.tasks.at(5), "5")
        assert.strictEqual(feedback.score, 1)
        assert.deepStrictEqual(yield* questions(yield* open({ hf_dataset: "open/sums", hf_subset: "hard" })), ["hard?"])
        assert.deepStrictEqual(yield* questions(yield* open({ hf_dataset: "open/sums", split: "test" })), [
          "test 0",
          "test 1",
        ])
        assert.isTrue(hub.requests.some(({ host }) => host === "storage"))
      }),
    ),
  )

  it.live("may be slices and sums of splits", () =>
    withHub({ "open/sums": sums }, ({ open }) =>
      Effect.gen(function* () {
        const of = (split: string) => Effect.flatMap(open({ hf_dataset: "open/sums", split }), questions)
        assert.deepStrictEqual(yield* of("train[:3]"), [...numbered(0, 3)])
        assert.deepStrictEqual(yield* of("train[4:7]"), [...numbered(4, 7)])
        assert.deepStrictEqual(yield* of("train[-2:]"), [...numbered(8, 10)])
        assert.deepStrictEqual(yield* of("train[20%:50%]"), [...numbered(2, 5)])
        assert.deepStrictEqual(yield* of("train[9:100]+test[:1]"), ["question 9", "test 0"])
        assert.deepStrictEqual(yield* problemsOf(open, { hf_dataset: "open/sums", split: "train[5:5]" }), [
          "open/sums/train[5:5]: expected at least one record, found none",
        ])
      }),
    ),
  )

  it.live("stay the same for a run that is resumed, also without a network", () => {
    const moving = { ...sums, branches: { main: first } }
    return withHub({ "open/sums": moving }, ({ open, hub }) =>
      Effect.gen(function* () {
        const { config, tasks } = yield* open({ hf_dataset: "open/sums" })
        moving.branches.main = second
        const before = hub.requests.length
        const away = { HF_ENDPOINT: "http://127.0.0.1:1" }
        for (const variables of [{}, away, { HF_HUB_OFFLINE: "1" }]) {
          const again = yield* open(config, variables)
          assert.strictEqual(again.tasks.digest, tasks.digest)
          assert.deepStrictEqual(again.config, config)
        }
        // A branch means what it meant when the hub was last asked.
        for (const variables of [away, { HF_HUB_OFFLINE: "1" }]) {
          assert.strictEqual((yield* open({ hf_dataset: "open/sums" }, variables)).config["hf_revision"], first)
        }
        assert.strictEqual(hub.requests.length, before)
        const newest = yield* open({ hf_dataset: "open/sums" })
        assert.strictEqual(newest.config["hf_revision"], second)
        assert.deepStrictEqual(yield* questions(newest), ["newer"])
        const offline = yield* Effect.flip(open({ hf_dataset: "open/sums", split: "test" }, { HF_HUB_OFFLINE: "1" }))
        assert.strictEqual(
          offline.message,
          `open/sums: the split "test" of ${second} is not in the cache, and HF_HUB_OFFLINE forbids a download`,
        )
      }),
    )
  })

  it.live("are downloaded with the token, which no other host and no file gets", () =>
    withHub({ "open/private": { ...sums, token: "hf_secret" } }, ({ open, hub, home }) =>
      Effect.gen(function* () {
        const config = { hf_dataset: "open/private" }
        const message = `open/private: there is no such data set at ${hub.url} that we may read (401)`
        assert.deepStrictEqual(yield* problemsOf(open, config, { hf_dataset: "open/none" }), [
          `${message}; check the name, and set HF_TOKEN if the data set is private or asks for consent`,
          `${message}; check the name, and set HF_TOKEN if the data set is private or asks for consent`.replace(
            "open/private",
            "open/none",
          ),
        ])
        const wrong = yield* Effect.flip(open(config, { HF_TOKEN: "hf_wrong" }))
        assert.strictEqual(wrong.message, `${message}; check the name, and that the token in HF_TOKEN may read it`)
        const odd = yield* Effect.flip(open(config, { HF_TOKEN: "hf_\nwrong" }))
        assert.notInclude(odd.message, "wrong")
        yield* open(config, { HF_TOKEN: "hf_secret" })
        const others = hub.requests.filter(({ host }) => host === "storage")
        assert.isTrue(others.length > 0 && others.every(({ authorization }) => authorization === undefined))
        const fs = yield* FileSystem.FileSystem
        for (const file of yield* filesIn(home)) {
          if ((yield* fs.stat(`${home}/${file}`)).type !== "File") continue
          assert.notInclude(yield* fs.readFileString(`${home}/${file}`), "hf_secret")
        }
      }),
    ),
  )

  it.live("are told apart by their names, and read from JSON, JSON Lines, CSV and gzip", () =>
    Effect.gen(function* () {
      const record = { question: "q", answer: "a" }
      const packed = yield* gzip(lines([{ question: "packed", answer: 1 }]))
      const files = {
        "README.md": "none",
        "train.json": JSON.stringify([{ question: "one" }, { question: "two" }].map((one) => ({ ...record, ...one }))),
        "data/dev.csv": 'question,answer\n"a ""quoted"", one",1\n',
        "test.jsonl.gz": packed,
        "test_more.tsv": "question\tanswer\nfrom tsv\t2\n",
        "extra-00000-of-00001.jsonl": lines([{ ...record, question: "extra" }]),
      }
      yield* withHub({ plain: { branches: { main: first }, commits: { [first]: files } } }, ({ open }) =>
        Effect.gen(function* () {
          const of = (split: string) => Effect.flatMap(open({ hf_dataset: "plain", split }), questions)
          assert.deepStrictEqual(yield* of("train"), ["one", "two"])
          assert.deepStrictEqual(yield* of("validation"), ['a "quoted", one'])
          assert.deepStrictEqual(yield* of("test"), ["packed", "from tsv"])
          assert.deepStrictEqual(yield* of("extra"), ["extra"])
        }),
      )
    }),
  )

  it.live("are read from the hub's own conversion if they have no file that can be read", () =>
    withHub(
      {
        "old/script": {
          branches: { main: first, "refs/convert/parquet": converted },
          commits: {
            [first]: { "script.py": "import datasets" },
            [converted]: {
              "default/train/0000.parquet": parquet("converted"),
              "other/train/0000.parquet": parquet("x"),
            },
          },
        },
      },
      ({ open }) =>
        Effect.gen(function* () {
          const dataset = yield* open({ hf_dataset: "old/script" })
          assert.deepStrictEqual(yield* questions(dataset), ["converted"])
          assert.strictEqual(dataset.config["hf_revision"], converted)
          assert.deepStrictEqual(yield* questions(yield* open({ hf_dataset: "old/script", hf_subset: "other" })), ["x"])
        }),
    ),
  )

  it.live("are refused with one line that says what there is", () =>
    withHub(
      {
        "open/sums": sums,
        "open/odd": {
          branches: { main: first },
          commits: {
            [first]: { "train.parquet": "PAR1 but nothing more PAR1", "test.jsonl": "{}\n[1]\n", "x.bin": "" },
          },
        },
        "open/none": { branches: { main: first }, commits: { [first]: { "x.bin": "" } } },
      },
      ({ open, hub, home }) =>
        Effect.gen(function* () {
          const [damaged = "", ...others] = yield* problemsOf(
            open,
            { hf_dataset: "open/odd" },
            { hf_dataset: "open/odd", split: "test" },
            { hf_dataset: "open/none" },
            { hf_dataset: "open/sums", split: "tran" },
            { hf_dataset: "open/sums", split: "train[1]" },
            { hf_dataset: "open/sums", hf_subset: "easy" },
            { hf_dataset: "open/sums", hf_revision: "v9" },
            { hf_dataset: "../sums" },
            { hf_dataset: "open/sums", input_field: "query" },
          )
          assert.match(damaged, /^open\/odd\/train\.parquet: the Parquet file is damaged: [^\n]+$/)
          assert.deepStrictEqual(others, [
            'open/odd/test.jsonl:2: expected a JSON object on one line, found "[1]"; "jq -c \'.[]\'" writes each item of an array on its own line',
            'conf.yaml: hf_dataset: it has no file that can be read; expected .parquet, .jsonl, .json, .csv or .tsv, found "x.bin"',
            'conf.yaml: split: expected one of the splits "train", "test" of open/sums, found "tran"',
            'conf.yaml: split: expected a split such as train, train[:100] or train[:10%]+test, found "train[1]"',
            'conf.yaml: hf_subset: expected one of the subsets "main", "hard", found "easy"',
            `open/sums: there is no revision "v9" at ${hub.url}; expected a branch, a tag or a commit in hf_revision`,
            'conf.yaml: hf_dataset: expected a name such as openai/gsm8k, found "../sums"',
            'open/sums/train:1: expected a field "query", found "question", "answer" (set input_field to choose another)',
          ])
          const away = yield* Effect.flip(open({ hf_dataset: "open/away" }, { HF_ENDPOINT: "http://127.0.0.1:1" }))
          assert.match(
            away.message,
            /^open\/away: no answer after 3 attempts; last failure: http:\/\/127\.0\.0\.1:1\/api\/datasets\/open\/away\/revision\/main cannot be reached: .+$/,
          )
          const files = yield* filesIn(home)
          assert.isFalse(files.some((file) => file.endsWith(".tmp")))
        }),
    ),
  )

  it.live("are downloaded again after a temporary failure or a damaged file", () =>
    withHub(
      { "open/sums": sums },
      ({ open, hub }) =>
        Effect.gen(function* () {
          const lines: Array<string> = []
          const logger = Logger.make(({ message }) => void lines.push(String(message)))
          const opened = yield* open({ hf_dataset: "open/sums" }).pipe(Effect.provide(Logger.layer([logger])))
          assert.strictEqual(opened.tasks.size, 10)
          // Each request says what is awaited, but not each of its failures.
          assert.strictEqual(lines.length, 2)
          assert.match(lines[0], /^open\/sums: \S+\/revision\/main answered 503: Too busy; trying up to 2 times more$/)
          assert.match(lines[1], /the content does not match its digest; trying up to 2 times more$/)
          const count = (part: string) => hub.requests.filter(({ path }) => path.includes(part)).length
          // Once for the branch and once for the files, of which the first request fails.
          assert.strictEqual(count("/revision/main"), 2)
          // A damaged file is asked for again, at both hosts.
          assert.strictEqual(count("train-00001"), 4)
        }),
      (path, before) => {
        if (before > 0) return undefined
        if (path.includes("/revision/main")) return { status: 503, headers: { "retry-after": "0" } }
        return path.includes("train-00001") && path.includes("signature") ? "damaged" : undefined
      },
    ),
  )

  it.live("are one file for several readers at once", () =>
    withHub({ "open/sums": sums }, ({ open, home }) =>
      Effect.gen(function* () {
        const sets = yield* Effect.forEach([1, 2, 3], () => open({ hf_dataset: "open/sums" }), {
          concurrency: "unbounded",
        })
        assert.strictEqual(new Set(sets.map(({ tasks }) => tasks.digest)).size, 1)
        const kept = (yield* filesIn(home)).filter((file) => file.endsWith(".jsonl"))
        assert.strictEqual(kept.length, 1)
      }),
    ),
  )

  it.live("keep what Parquet holds and JSON does not", () => {
    const bytes = new Uint8Array(
      parquetWriteBuffer({
        columnData: [
          { name: "large", data: [9007199254740993n, null], type: "INT64", nullable: true },
          { name: "time", data: [new Date(0), new Date(1000)], type: "TIMESTAMP" },
          { name: "tags", data: [["a", "b"], []] },
          { name: "half", data: [0.5, 1.5], type: "DOUBLE" },
        ],
        codec: "ZSTD",
        compressors: { ZSTD: (input) => zstdCompressSync(input) },
      }),
    )
    const repository = { branches: { main: first }, commits: { [first]: { "train.parquet": bytes } } }
    return withHub({ kinds: repository }, ({ hub, home }) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const asked = { id: "kinds", subset: null, revision: null, split: "train" }
        const { path } = yield* recordsFile(asked, { source: "conf.yaml" }).pipe(
          Effect.provideService(
            ConfigProvider.ConfigProvider,
            ConfigProvider.fromUnknown({ HF_ENDPOINT: hub.url, HF_HOME: home }),
          ),
        )
        assert.strictEqual(
          yield* fs.readFileString(path),
          lines([
            { large: "9007199254740993", time: "1970-01-01T00:00:00.000Z", tags: ["a", "b"], half: 0.5 },
            { large: null, time: "1970-01-01T00:00:01.000Z", tags: [], half: 1.5 },
          ]),
        )
      }),
    )
  })
})
