/** The example of one's own page, in a real browser. */
import { spawn } from "node:child_process"
import { assert, it } from "vitest"
import { effect, resultOf, root } from "../../cli/effect.ts"
import { withFolder } from "../folder.ts"
import { inBrowser } from "../inBrowser.ts"

inBrowser("the example of one's own page", ({ page, text }) => {
  it("trains with the digest of the same training by the command", () =>
    withFolder(async (folder) => {
      const child = spawn(process.execPath, ["examples/programs/in-the-browser/serve.ts"], {
        cwd: root,
        env: { ...process.env, PORT: "0" },
        stdio: ["ignore", "pipe", "inherit"],
      })
      try {
        const url = await new Promise<string>((resolve, reject) => {
          child.stdout.once("data", (data) => resolve(String(data).trim()))
          child.once("exit", (code) => reject(new Error(`the example ended with code ${code}`)))
        })
        await page.goto(url)
        await page.until("document.querySelector('pre').textContent.includes('digest ')")
        const lines = (await text("pre")).trim().split("\n")
        assert.match(lines[0], /^step 5\d\d\d: mean return \d+\.\d$/)
        assert.lengthOf(lines, 5)
        const settings = ["--total-steps", "20000", "--set", "validation.every_steps=5000", "--backend", "wasm"]
        const trained = await effect([
          "run",
          "examples/cartpole.ts",
          ...settings,
          "--results-dir",
          folder,
          "--quiet",
          "--json",
        ])
        assert.strictEqual(lines.at(-1), `digest ${resultOf(trained).digest}`)
      } finally {
        child.kill()
      }
    }))
})
