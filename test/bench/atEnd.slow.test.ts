import { spawnSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"

/** Runs code in a process that has two things to undo; returns its exit code and what it prints. */
const ended = (code: string): readonly [number | null, string] => {
  const script = `
import { atEnd } from ${JSON.stringify(new URL("../../bench/atEnd.ts", import.meta.url).href)}
const first = atEnd(() => console.log("first"))
const second = atEnd(() => console.log("second"))
${code}`
  const { status, stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" })
  return [status, stdout.trim().replaceAll("\n", " ")]
}

describe("what a process has begun", () => {
  it("is undone when it ends, from the last to the first", () => {
    assert.deepStrictEqual(ended(""), [0, "second first"])
    assert.deepStrictEqual(ended("process.exit(2)"), [2, "second first"])
  })

  it("is undone when it is interrupted", () => {
    const wait = "setInterval(() => {}, 1000)"
    assert.deepStrictEqual(ended(`process.kill(process.pid, "SIGINT"); ${wait}`), [130, "second first"])
    assert.deepStrictEqual(ended(`process.kill(process.pid, "SIGTERM"); ${wait}`), [143, "second first"])
  })

  it("is undone once", () => {
    assert.deepStrictEqual(ended("first(); first()"), [0, "first second"])
    assert.deepStrictEqual(ended('first(); second(); console.log(process.listenerCount("SIGINT"))'), [
      0,
      "first second 0",
    ])
  })
})
