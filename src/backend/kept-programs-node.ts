/** Keeps the compiled programs of the `wasm` backend between processes, so that they start faster. `named-node.ts` uses it. */
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { deserialize, serialize } from "node:v8"
import type { CompiledModule } from "../graph/wasm/compile.ts"
import { compileCache, type CompileCache } from "./compile-cache-node.ts"
import type { KeptPrograms } from "./wasmModules.ts"

const digestOf = (content: string | Uint8Array): Buffer => createHash("sha256").update(content).digest()

const prefix = "effect-rl-program-"

/** Beyond so many files, the older half is removed. A file has about 100 kB. */
const mostFiles = 200

const isCompiled = (value: unknown): value is CompiledModule =>
  typeof value === "object" && value !== null && "bytes" in value && "state" in value && "programs" in value

/**
 * Keeps each group of programs as a file in this folder: a digest of the rest, then the module and the places of its arrays.
 * A file that is damaged, or cannot be written, costs nothing but the time to compile.
 */
export const keptIn = ({ folder, version }: CompileCache): KeptPrograms => {
  const fileOf = (description: string): string =>
    join(folder, prefix + digestOf(`${version}\n${description}`).toString("hex").slice(0, 32))
  return {
    get: (description) => {
      try {
        const content = readFileSync(fileOf(description))
        const rest = content.subarray(32)
        if (!digestOf(rest).equals(content.subarray(0, 32))) return undefined
        const value: unknown = deserialize(rest)
        return isCompiled(value) ? value : undefined
      } catch {
        return undefined
      }
    },
    set: (description, compiled) => {
      try {
        removeOld(folder)
        const file = fileOf(description)
        const rest = serialize(compiled)
        const temporary = `${file}.${process.pid}.tmp`
        writeFileSync(temporary, Buffer.concat([digestOf(rest), rest]))
        renameSync(temporary, file)
      } catch {
        // Where nothing can be written, the next process compiles again.
      }
    },
  }
}

const removeOld = (folder: string): void => {
  const files = readdirSync(folder).filter((name) => name.startsWith(prefix))
  if (files.length <= mostFiles) return
  const times = new Map(files.map((name) => [name, statSync(join(folder, name)).mtimeMs]))
  const oldFirst = files.toSorted((a, b) => (times.get(a) ?? 0) - (times.get(b) ?? 0))
  for (const name of oldFirst.slice(0, mostFiles / 2)) rmSync(join(folder, name), { force: true })
}

/** Keeps them where Node keeps compiled JavaScript; undefined if that is nowhere. */
export const keptBesideCompiled = (): KeptPrograms | undefined => {
  const cache = compileCache()
  return cache && keptIn(cache)
}
