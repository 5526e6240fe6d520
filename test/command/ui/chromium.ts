import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"

const names = ["chromium", "chromium-browser", "google-chrome"]

/** The path of a browser that the tests can control; undefined if there is none. */
export const chromium = [
  process.env.CHROMIUM ?? "",
  ...(process.env.PATH ?? "").split(delimiter).flatMap((folder) => names.map((name) => join(folder, name))),
].find(existsSync)

export interface Page {
  /**
   * Loads an address anew, by way of an empty page. A browser keeps the page if only the part after the # differs, so a wait
   * could be fulfilled by what the previous address showed.
   */
  readonly goto: (url: string) => Promise<void>
  /** The value of an expression, which may be a promise. */
  readonly evaluate: (expression: string) => Promise<unknown>
  /** Waits until an expression is true, and tells after a while what it waits for; the watchdog ends what never holds. */
  readonly until: (expression: string) => Promise<void>
  readonly press: (key: string, text?: string) => Promise<void>
  readonly type: (text: string) => Promise<void>
  /** Moves, presses or releases the left mouse button at a place in the window. */
  readonly mouse: (type: "mouseMoved" | "mousePressed" | "mouseReleased", x: number, y: number) => Promise<void>
  /** Turns touch input on or off. The page then sees a device with a coarse pointer. */
  readonly touchScreen: (isOn: boolean) => Promise<void>
  /** Puts fingers on the window, besides those that are on it; without any, lifts all. */
  readonly fingers: (
    ...places: ReadonlyArray<{ readonly id: number; readonly x: number; readonly y: number }>
  ) => Promise<void>
  readonly look: (width: number, height: number, scheme?: "light" | "dark") => Promise<void>
  readonly screenshot: (
    clip?: { x: number; y: number; width: number; height: number },
    whole?: boolean,
  ) => Promise<Buffer>
  /** Prints the page, and returns the PDF. */
  readonly pdf: () => Promise<Buffer>
  /** Returns what was thrown, and what the browser complained of, since the last call. */
  readonly complaints: () => ReadonlyArray<string>
}

export interface Browser {
  readonly page: Page
  readonly close: () => Promise<void>
}

/** The flags of a browser that computes WebGPU on the CPU, by SwiftShader, which Debian's Chromium brings. */
export const softwareGpu = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]

/**
 * A browser driven by the DevTools protocol over its WebSocket. What the tests need of it is this much, so that a package
 * for it (with versions of a browser that it wants to match) would be more to keep than this file.
 */
export const launch = async (executable: string, gpu = ["--disable-gpu"]): Promise<Browser> => {
  const profile = mkdtempSync(join(tmpdir(), "effect-ui-"))
  const flags = ["--headless=new", "--no-sandbox", ...gpu, "--disable-dev-shm-usage", "--hide-scrollbars"]
  const child = spawn(
    executable,
    [...flags, "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"],
    {
      stdio: ["ignore", "ignore", "pipe"],
    },
  )
  const socket = new WebSocket(await addressOf(child))
  await new Promise((resolve) => socket.addEventListener("open", resolve, { once: true }))
  const waiting = new Map<number, { resolve: (value: Reply) => void; reject: (error: Error) => void }>()
  const complaints: Array<string> = []
  let asked = 0
  let buttons = 0
  let crashed = false
  let session: string | undefined

  const send = (method: string, params: object = {}): Promise<Reply> =>
    new Promise((resolve, reject) => {
      waiting.set(++asked, { resolve, reject })
      socket.send(
        JSON.stringify({ id: asked, method, params, ...(session === undefined ? {} : { sessionId: session }) }),
      )
    })

  socket.addEventListener("message", ({ data }) => {
    const message = JSON.parse(String(data))
    const asker = waiting.get(message.id)
    waiting.delete(message.id)
    if (message.error !== undefined) asker?.reject(new Error(message.error.message))
    else asker?.resolve(message.result)
    if (message.method === "Inspector.targetCrashed") {
      crashed = true
      for (const { reject } of waiting.values()) reject(new Error("the page has crashed"))
    }
    if (message.method === "Runtime.exceptionThrown")
      complaints.push(message.params.exceptionDetails.exception.description)
    if (message.method === "Log.entryAdded" && message.params.entry.level === "error")
      complaints.push(message.params.entry.text)
  })

  const { targetId } = await send("Target.createTarget", { url: "about:blank" })
  session = (await send("Target.attachToTarget", { targetId, flatten: true })).sessionId
  for (const domain of ["Page", "Runtime", "Log", "Inspector"]) await send(`${domain}.enable`)

  const evaluate = async (expression: string): Promise<unknown> => {
    const { result, exceptionDetails } = await send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })
    if (exceptionDetails !== undefined)
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value
  }
  const page: Page = {
    evaluate,
    goto: async (url) => {
      for (const next of ["about:blank", url]) {
        await send("Page.navigate", { url: next })
        const isBlank = next === "about:blank"
        await page.until(`(location.href === "about:blank") === ${isBlank} && document.readyState === "complete"`)
      }
    },
    until: async (expression) => {
      for (let look = 1; (await evaluate(expression).catch(() => false)) !== true; look++) {
        if (crashed) throw new Error(`the page has crashed; waited for ${expression}`)
        if (look % 4000 === 0) {
          const shown = await evaluate("document.body.innerText.slice(0, 2000)").catch(String)
          process.stderr.write(
            `still not true: ${expression}; ${complaints.join("; ")}\nThe page shows: ${String(shown)}\n`,
          )
        }
        await new Promise((resolve) => setTimeout(resolve, 25))
      }
    },
    press: async (key, text) => {
      await send("Input.dispatchKeyEvent", {
        type: "keyDown",
        key,
        code: key === " " ? "Space" : key,
        text,
        windowsVirtualKeyCode: codes[key] ?? 0,
      })
      await send("Input.dispatchKeyEvent", { type: "keyUp", key, windowsVirtualKeyCode: codes[key] ?? 0 })
    },
    type: async (text) => void (await send("Input.insertText", { text })),
    mouse: async (type, x, y) => {
      if (type !== "mouseMoved") buttons = type === "mousePressed" ? 1 : 0
      const button = type === "mouseMoved" ? {} : { button: "left", clickCount: 1 }
      await send("Input.dispatchMouseEvent", { type, x, y, buttons, ...button })
    },
    touchScreen: async (isOn) => {
      await send("Emulation.setTouchEmulationEnabled", { enabled: isOn, maxTouchPoints: 5 })
    },
    fingers: async (...places) => {
      await send("Input.dispatchTouchEvent", {
        type: places.length === 0 ? "touchEnd" : "touchStart",
        touchPoints: places,
      })
    },
    look: async (width, height, scheme = "light") => {
      await send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 })
      await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] })
    },
    screenshot: async (clip, whole = false) => {
      const area = clip === undefined ? {} : { clip: { ...clip, scale: 1 } }
      const { data } = await send("Page.captureScreenshot", { format: "png", captureBeyondViewport: whole, ...area })
      return Buffer.from(data, "base64")
    },
    pdf: async () => Buffer.from((await send("Page.printToPDF", { printBackground: true })).data, "base64"),
    complaints: () => complaints.splice(0),
  }
  return {
    page,
    close: async () => {
      socket.close()
      const gone = new Promise((resolve) => child.once("close", resolve))
      child.kill()
      await gone
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** The parts of Chromium's answers that this file reads. */
interface Reply {
  readonly targetId: string
  readonly sessionId: string
  readonly data: string
  readonly result: { readonly value: unknown }
  readonly exceptionDetails?: { readonly text: string; readonly exception?: { readonly description: string } }
}

const codes: Readonly<Record<string, number>> = {
  Tab: 9,
  Enter: 13,
  " ": 32,
  End: 35,
  Home: 36,
  ArrowLeft: 37,
  ArrowRight: 39,
}

const addressOf = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ""
    child.stderr?.on("data", (chunk) => {
      text += String(chunk)
      const address = /DevTools listening on (ws:\S+)/.exec(text)?.[1]
      if (address !== undefined) resolve(address)
    })
    child.once("close", () => reject(new Error(`the browser did not start: ${text}`)))
  })
