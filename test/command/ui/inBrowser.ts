/** The page in a real browser, over a folder of results: what its tests share. */
import { Effect, Exit, Scope } from "effect"
import { afterAll, assert, beforeAll, describe } from "vitest"
import { serve, type PageServerOptions } from "../../../src/command/ui/server-node.ts"
import { type Browser, chromium, launch, type Page } from "./chromium.ts"

export interface Tools {
  readonly page: Page
  /** Serves a folder until the body has ended; then the page must have had nothing to complain of. */
  readonly served: (
    directory: string,
    body: (url: string) => Promise<void>,
    options?: Pick<PageServerOptions, "token" | "changeToken" | "cluster">,
  ) => Promise<void>
  readonly text: (selector: string) => Promise<string>
  readonly count: (selector: string, wanted: number) => Promise<void>
  /** Waits until a chart, by its place in the page, has as many lines. */
  readonly drawn: (chart: number, lines: number) => Promise<void>
  readonly click: (selector: string) => Promise<unknown>
  /** Sets a field, a slider or a choice, as somebody at it would. */
  readonly set: (selector: string, value: string, place?: number) => Promise<unknown>
}

export const inBrowser = (title: string, tests: (tools: Tools) => void, gpu?: Array<string>): void => {
  if (chromium === undefined) {
    const line = `${title}: SKIPPED, there is no chromium here (CHROMIUM names one)`
    const bar = "#".repeat(line.length + 4)
    // In CI somebody counts on these, so nobody should overlook that they are not there.
    process.stderr.write(process.env.CI === "true" ? `\n${bar}\n# ${line} #\n${bar}\n\n` : `${line}\n`)
  }
  describe.skipIf(chromium === undefined)(title, () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await launch(chromium ?? "", gpu)
    })
    afterAll(() => browser.close())
    // The browser is there when the tests are.
    const page: Page = {
      goto: (url) => browser.page.goto(url),
      evaluate: (expression) => browser.page.evaluate(expression),
      until: (expression) => browser.page.until(expression),
      press: (key, text) => browser.page.press(key, text),
      type: (text) => browser.page.type(text),
      look: (width, height, scheme) => browser.page.look(width, height, scheme),
      touchScreen: (isOn) => browser.page.touchScreen(isOn),
      fingers: (...places) => browser.page.fingers(...places),
      mouse: (type, x, y) => browser.page.mouse(type, x, y),
      screenshot: (clip, whole) => browser.page.screenshot(clip, whole),
      pdf: () => browser.page.pdf(),
      complaints: () => browser.page.complaints(),
    }
    const all = (selector: string): string => `document.querySelectorAll(${JSON.stringify(selector)})`

    tests({
      page,
      served: async (directory, body, more = {}) => {
        const scope = await Effect.runPromise(Scope.make())
        const options = { directory, host: "127.0.0.1", port: 0, pollEvery: 100, ...more }
        const { port } = await Effect.runPromise(Scope.provide(serve(options), scope))
        try {
          await body(`http://localhost:${port}/`)
          assert.deepStrictEqual(page.complaints(), [])
        } finally {
          // The browser complains when the server goes away, which is no defect of the page.
          await page.goto("about:blank")
          page.complaints()
          await Effect.runPromise(Scope.close(scope, Exit.void))
        }
      },
      text: async (selector) => String(await page.evaluate(`${all(selector)}[0]?.textContent`)),
      count: (selector, wanted) => page.until(`${all(selector)}.length === ${wanted}`),
      drawn: (chart, lines) =>
        page.until(
          `(() => { const plot = ${all(".plot")}[${chart}]; ` +
            `return plot.dataset.lines === '${lines}' && (${lines} === 0 || plot.querySelector('canvas') !== null || ` +
            "plot.getBoundingClientRect().top > innerHeight) })()",
        ),
      click: (selector) => page.evaluate(`${all(selector)}[0].click()`),
      set: (selector, value, place = 0) =>
        page.evaluate(
          `(() => { const one = ${all(selector)}[${place}]; one.value = ${JSON.stringify(value)}; ` +
            "for (const name of ['input', 'change']) one.dispatchEvent(new Event(name)) })()",
        ),
    })
  })
}
