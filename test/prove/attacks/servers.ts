/** Attacks on the local servers, on the caches of the user, and by small files that unpack to large ones. */
import { chownSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { join } from "node:path"
import { spawnSync } from "node:child_process"
import { gzipSync } from "node:zlib"
import { Effect, Exit, Stream } from "effect"
import { parquetWriteBuffer } from "hyparquet-writer"
import { linesOf } from "../../../src/agents/task/hub/rows.ts"
import { adaptersIn, refusedPath } from "../../../src/decoder/serve/allowed-adapters-node.ts"
import { userCache } from "../../../bin/userCache.js"
import { root } from "../../command/cli/effect.ts"
import { serving } from "../../decoder/serve/serving.ts"
import { must } from "../Proof.ts"
import type { Attack } from "./Attack.ts"

/** Sends a request with headers that `fetch` does not let a program choose, and returns its status. */
const statusOf = (url: string, headers: Readonly<Record<string, string>>): Promise<number> =>
  new Promise((resolve, reject) => {
    const asked = request(url, { headers, agent: false }, (response) => {
      response.resume()
      response.on("end", () => resolve(response.statusCode ?? 0))
    })
    asked.on("error", reject)
    asked.end()
  })

const hostAttacks: ReadonlyArray<Attack> = [
  {
    door: "serve",
    name: "a page of another site, by its own name and by DNS rebinding",
    attempt: async () => {
      const seen: Array<number> = []
      await serving({}, async ({ url }) => {
        for (const host of [
          "evil.example",
          "evil.example:8000",
          "127.0.0.1.evil.example",
          "localhost.evil.example",
          "10.0.0.7",
        ]) {
          seen.push(await statusOf(`${url}/v1/models`, { host }))
        }
        for (const origin of ["http://evil.example", "null"]) seen.push(await statusOf(`${url}/v1/models`, { origin }))
      })
      must(
        seen.every((status) => status === 421 || status === 403),
        `it answered ${seen.join(", ")}`,
      )
      return seen.join(", ")
    },
  },
  {
    door: "serve",
    name: "paths of adapters that lead out of the allowed folder",
    attempt: async (folder) => {
      for (const one of ["out", "secret"]) mkdirSync(join(folder, one))
      symlinkSync(join(folder, "secret"), join(folder, "out/link"))
      const read = adaptersIn([join(folder, "out")], Effect.succeed)
      const paths = ["/etc", "/missing", join(folder, "secret"), join(folder, "out/link"), `${folder}/out/../secret`]
      for (const path of paths) {
        const exit = await Effect.runPromise(Effect.flip(read(path)))
        must(exit.message === refusedPath, `${path}: ${exit.message}`)
      }
      return `${paths.length} paths, one answer`
    },
  },
  {
    door: "serve",
    name: "prompts that take long to encode, and lists that take long to decode",
    attempt: async () => {
      const long = "word ".repeat(1_600_000)
      const ones = Array.from({ length: 1_000_000 }, () => 1)
      const began = process.cpuUsage()
      await serving({ maxLength: 2048 }, async ({ post }) => {
        for (const [path, body] of [
          ["/tokenize", { prompt: long }],
          ["/v1/completions", { prompt: long }],
          ["/v1/completions", { prompt: ones }],
          ["/v1/completions", { prompt: Array.from({ length: 1025 }, () => "a") }],
          ["/v1/chat/completions", { messages: [{ role: "user", content: long }] }],
          [
            "/v1/chat/completions",
            { messages: Array.from({ length: 100_000 }, () => ({ role: "user", content: "" })) },
          ],
          ["/detokenize", { tokens: ones }],
        ] as const) {
          const { status } = await post(path, body)
          must(status === 400, `${path} answered ${status}`)
        }
      })
      const { user } = process.cpuUsage(began)
      must(user < 20e6, `they took ${user / 1e6} s of CPU time`)
      return `refused within ${(user / 1e6).toFixed(1)} s of CPU time`
    },
  },
]

const cacheAttacks: ReadonlyArray<Attack> = [
  {
    door: "caches",
    name: "a folder for caches that another user has made first, or that is a link",
    attempt: async (folder) => {
      const isRoot = process.getuid?.() === 0
      mkdirSync(join(folder, "planted/effect-rl"), { recursive: true })
      mkdirSync(join(folder, "elsewhere"))
      mkdirSync(join(folder, "linked"))
      symlinkSync(join(folder, "elsewhere"), join(folder, "linked/effect-rl"))
      if (isRoot) chownSync(join(folder, "planted/effect-rl"), 65_534, 65_534)
      for (const name of isRoot ? ["planted", "linked"] : ["linked"]) {
        const env = { ...process.env, XDG_CACHE_HOME: join(folder, name), NODE_COMPILE_CACHE: "", TMPDIR: folder }
        const { status } = spawnSync(process.execPath, [join(root, "bin/effect.js"), "--help"], { env })
        must(status === 0, `effect --help ended with ${status}`)
      }
      const written = [join(folder, "planted/effect-rl"), join(folder, "elsewhere")].flatMap((one) => readdirSync(one))
      must(written.length === 0, `it wrote ${written.join(", ")}`)
      must(!readdirSync(folder).includes("node-compile-cache"), "it kept code in the folder for temporary files")
      return isRoot
        ? "neither was used"
        : "skipped: the folder of another user, which root alone can make; the link was not used"
    },
  },
  {
    door: "caches",
    name: "a folder for caches where a folder cannot be",
    attempt: async (folder) => {
      const before = process.env.XDG_CACHE_HOME
      writeFileSync(join(folder, "file"), "")
      try {
        process.env.XDG_CACHE_HOME = join(folder, "file")
        must(userCache("compiled") === undefined, "it was used")
      } finally {
        if (before === undefined) delete process.env.XDG_CACHE_HOME
        else process.env.XDG_CACHE_HOME = before
      }
      return "nothing is kept"
    },
  },
]

/** Returns the message with which a downloaded file is refused, after at most this much memory. */
const refusedFile = async (name: string, bytes: Uint8Array): Promise<string> => {
  const exit = await Effect.runPromise(Effect.exit(Stream.runDrain(linesOf(`data/${name}`, name, bytes))))
  must(Exit.isFailure(exit), `${name} was read`)
  const message = Exit.isFailure(exit) ? String(exit.cause) : ""
  must(message.includes(`data/${name}`), message)
  return message
}

const bombAttacks: ReadonlyArray<Attack> = [
  {
    door: "hub",
    name: "files that unpack to a thousand times their size",
    attempt: async () => {
      const text = "x".repeat(1000)
      const rows = Array.from({ length: 70_000 }, () => text)
      const files = [
        ["zeros.jsonl.gz", new Uint8Array(gzipSync(new Uint8Array(100_000_000)))],
        [
          "same.parquet",
          new Uint8Array(parquetWriteBuffer({ columnData: [{ name: "text", data: rows, type: "STRING" }] })),
        ],
        ["deep.jsonl", new TextEncoder().encode(`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`)],
      ] as const
      for (const [name, bytes] of files) await refusedFile(name, bytes)
      return files.map(([name, { length }]) => `${name} (${length} bytes)`).join(", ")
    },
  },
]

export const serverAttacks: ReadonlyArray<Attack> = [...hostAttacks, ...cacheAttacks, ...bombAttacks]
