import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { root, start } from "../../command/cli/effect.ts"

/** The folder in which Debian's Chromium brings the Vulkan loader, and a Vulkan device that computes on the CPU. */
const folder = "/usr/lib/chromium"
const missing = ["vk_swiftshader_icd.json", "libvulkan.so.1"].filter((file) => !existsSync(`${folder}/${file}`))
if (missing.length > 0)
  console.warn(`webgpu: SKIPPED, ${folder} lacks ${missing.join(" and ")} (Debian's package chromium has them)`)

describe.skipIf(missing.length > 0)("the backend webgpu, on a device in software", () => {
  it("passes states from one program to another, and gives what the CPU gives", () => {
    const script = fileURLToPath(new URL("webgpuRun.ts", import.meta.url))
    const env = {
      ...process.env,
      VK_ICD_FILENAMES: `${folder}/vk_swiftshader_icd.json`,
      LD_LIBRARY_PATH: [process.env.LD_LIBRARY_PATH, folder].filter((entry) => entry !== undefined).join(":"),
    }
    const { cpu, webgpu } = JSON.parse(execFileSync(process.execPath, [script], { env, encoding: "utf8" }))
    assert.deepStrictEqual(cpu.shared, { read: [13, 26, 39], doubled: [26, 52, 78], again: [1, 2, 3] })
    assert.isAbove(cpu.trained.episodes, 2)
    assert.deepStrictEqual(webgpu, cpu)
  })
})

it("a machine without the Vulkan loader gets one line on stderr", async (context) => {
  const { LD_LIBRARY_PATH: _, ...env } = process.env
  const { code, stderr } = await start(["run", "examples/cartpole.ts", "--backend", "webgpu"], root, { env }).ended
  if (!stderr.includes("libvulkan.so.1: cannot open")) return context.skip("this machine has the Vulkan loader")
  assert.strictEqual(code, 1)
  assert.match(stderr, /^effect: Backend "webgpu" is not available: libvulkan\.so\.1: .*\n$/)
})
