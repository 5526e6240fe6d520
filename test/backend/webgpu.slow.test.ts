import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"

/** A Vulkan device that computes on the CPU, which Debian's Chromium brings. */
const device = "/usr/lib/chromium/vk_swiftshader_icd.json"
const loaders = ["/usr/lib/x86_64-linux-gnu", ...(process.env.LD_LIBRARY_PATH ?? "").split(":")].filter((folder) =>
  existsSync(`${folder}/libvulkan.so.1`),
)

const missing = [
  ...(existsSync(device) ? [] : [`${device} (Debian's package chromium)`]),
  ...(loaders.length > 0 ? [] : ["libvulkan.so.1 (Debian's package libvulkan1)"]),
]
if (missing.length > 0) console.warn(`webgpu: SKIPPED, for lack of ${missing.join(" and ")}`)

describe.skipIf(missing.length > 0)("the backend webgpu, on a device in software", () => {
  it("passes states from one program to another, and gives what the CPU gives", () => {
    const script = fileURLToPath(new URL("webgpuRun.ts", import.meta.url))
    const env = { ...process.env, VK_ICD_FILENAMES: device }
    const { cpu, webgpu } = JSON.parse(execFileSync(process.execPath, [script], { env, encoding: "utf8" }))
    assert.deepStrictEqual(cpu.shared, { read: [13, 26, 39], doubled: [26, 52, 78], again: [1, 2, 3] })
    assert.isAbove(cpu.trained.episodes, 2)
    assert.deepStrictEqual(webgpu, cpu)
  })
})
