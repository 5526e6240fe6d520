import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { adaptersIn, refusedPath } from "../../../src/decoder/serve/allowed-adapters-node.ts"
import { withFolder } from "../../command/cli/effect.ts"

describe("adapters that clients may load", () => {
  it("are in the folders of the server, without a way out, and all refusals are the same", () =>
    withFolder(async (folder) => {
      for (const one of ["out/run_a/step_1", "out/links", "secret/adapter", "outside"]) {
        mkdirSync(join(folder, one), { recursive: true })
        writeFileSync(join(folder, one, "adapter_config.json"), "{}")
      }
      symlinkSync(join(folder, "secret/adapter"), join(folder, "out/away"))
      symlinkSync(join(folder, "out/run_a"), join(folder, "out/within"))
      symlinkSync(
        join(folder, "secret/adapter/adapter_config.json"),
        join(folder, "out/links/adapter_model.safetensors"),
      )
      symlinkSync(join(folder, "out"), join(folder, "alias"))
      const read = adaptersIn([join(folder, "out"), join(folder, "missing")], Effect.succeed)
      const real = realpathSync(join(folder, "out/run_a/step_1"))
      for (const path of [
        join(folder, "out/run_a/step_1"),
        real,
        join(folder, "out/within/step_1"),
        relative(".", join(folder, "out/run_a/step_1")),
      ]) {
        assert.strictEqual(await Effect.runPromise(read(path)), real, path)
      }
      for (const path of [
        "/etc",
        "/etc/passwd",
        "/none",
        join(folder, "secret/adapter"),
        `${folder}/out/../secret/adapter`,
        join(folder, "outside"),
        join(folder, "out/away"),
        join(folder, "out/links"),
        join(folder, "out/none"),
        join(folder, "out/run_a/step_1/adapter_config.json"),
        join(folder, "alias/run_a/step_1"),
        "a\0b",
        "",
      ]) {
        const { message } = await Effect.runPromise(Effect.flip(read(path)))
        assert.strictEqual(message, refusedPath, path)
      }
    }))
})
