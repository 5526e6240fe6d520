/** The small models with expected outputs in test/fixtures/hugging-face; its README says how they were made. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as Weights from "../../../src/base/formats/Weights.ts"

export const fixtures = fileURLToPath(new URL("../../fixtures/hugging-face", import.meta.url))

/** Returns the files of a fixture's folder by name. */
export const filesOf = (folder: string): Record<string, Uint8Array> =>
  Object.fromEntries(
    readdirSync(`${fixtures}/${folder}`, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => [name, new Uint8Array(readFileSync(`${fixtures}/${folder}/${name}`))]),
  )

/** Returns a fixture's JSON file. */
export const jsonOf = (path: string) => JSON.parse(readFileSync(`${fixtures}/${path}`, "utf8"))

export const text = (value: string): Uint8Array => new TextEncoder().encode(value)
export const json = (value: unknown): Uint8Array => text(JSON.stringify(value))

/** Files in memory as a folder of a model. */
export const inMemory = Weights.inRecord
