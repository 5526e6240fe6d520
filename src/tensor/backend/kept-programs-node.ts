/**
 * Stores the compiled programs of the `wasm` backend on disk, so that later processes start faster. `named-node.ts`
 * uses it.
 */
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { deserialize, serialize } from "node:v8"
import { isOwnFile } from "../../../bin/userCache.js"
import type { CompiledModule } from "../graph/wasm/compile.ts"
import { compileCache, type CompileCache } from "../../base/files/compile-cache-node.ts"
import type { KeptPrograms } from "./wasmModules.ts"

const digestOf = (content: string | Uint8Array): Buffer => createHash("sha256").update(content).digest()

const prefix = "effect-rl-program-"

/** If there are more files than this, the half that was unused for longest is removed. A file has about 100 kB. */
const mostFiles = 200

const isCompiled = (value: unknown): value is CompiledModule =>
  typeof value === "object" && value !== null && "bytes" in value && "state" in value && "programs" in value

/**
 * Keeps each group of programs as a file in a folder. The file has a digest of its content, then the module and the
 * addresses of its arrays. Files that are damaged or belong to another user are ignored, and a file that cannot be
 * written is skipped; the programs are then compiled again.
 */
export const keptIn = ({ folder, build }: CompileCache): KeptPrograms => {
  const fileOf = (description: string): string =>
    join(folder, prefix + digestOf(`${build}\n${description}`).toString("hex").slice(0, 32))
  return {
    get: (description) => {
      try {
        const file = fileOf(description)
        if (!isOwnFile(file)) return undefined
        const content = readFileSync(file)
        const rest = content.subarray(32)
        if (!digestOf(rest).equals(content.subarray(0, 32))) return undefined
        const value: unknown = deserialize(rest)
        if (!isCompiled(value)) return undefined
        utimesSync(file, new Date(), new Date())
        return value
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
        writeFileSync(temporary, Buffer.concat([digestOf(rest), rest]), { mode: 0o600 })
        renameSync(temporary, file)
      } catch {
        // If the file cannot be written, the next process compiles again.
      }
    },
  }
}

const removeOld = (folder: string): void => {
  const files = readdirSync(folder).filter((name) => name.startsWith(prefix))
  if (files.length <= mostFiles) return
  const times = new Map(
    files.map((name) => [name, statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0]),
  )
  const oldFirst = files.toSorted((a, b) => (times.get(a) ?? 0) - (times.get(b) ?? 0))
  for (const name of oldFirst.slice(0, mostFiles / 2)) rmSync(join(folder, name), { force: true })
}

/** Keeps programs in the folder where Node caches compiled JavaScript; undefined if Node has no such folder. */
export const keptBesideCompiled = (): KeptPrograms | undefined => {
  const cache = compileCache()
  return cache && keptIn(cache)
}
