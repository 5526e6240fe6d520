import type { Reporter, TestModule } from "vitest/node"

/** Ends a run with the plain line that any tool can read: `12 passed, 0 failed`. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, errors: ReadonlyArray<unknown>): void {
    const counts = { passed: 0, failed: errors.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      for (const test of module.children.allTests()) counts[test.result().state]++
      // A file that does not load has no tests to fail.
      if (
        module.state() === "failed" &&
        [...module.children.allTests()].every((test) => test.result().state !== "failed")
      )
        counts.failed++
    }
    const skipped = counts.skipped + counts.pending
    process.stdout.write(
      `${counts.passed} passed, ${counts.failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}\n`,
    )
  }
}
