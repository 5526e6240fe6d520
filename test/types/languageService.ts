import { spawn } from "node:child_process"
import { fileURLToPath, pathToFileURL } from "node:url"
import { join } from "node:path"
import { isPlain } from "../../src/base/config/Config.ts"

export const root = fileURLToPath(new URL("../..", import.meta.url))

export interface LanguageService {
  /** Returns the text that an editor shows over a position of a file, which need not be on disk. */
  readonly hover: (file: string, text: string, at: number) => Promise<string>
  readonly close: () => void
}

/** TypeScript's language service as editors talk to it: by the language server protocol, over a process's pipes. */
export const languageService = async (): Promise<LanguageService> => {
  const child = spawn(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "--lsp", "--stdio"], {
    cwd: root,
    stdio: ["pipe", "pipe", "ignore"],
  })
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  const opened = new Map<string, number>()
  let received = Buffer.alloc(0)
  let asked = 0

  const send = (message: object): void => {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }))
    child.stdin.write(`Content-Length: ${body.length}\r\n\r\n`)
    child.stdin.write(body)
  }
  const ask = (method: string, params: object): Promise<unknown> =>
    new Promise((resolve, reject) => {
      waiting.set(++asked, { resolve, reject })
      send({ id: asked, method, params })
    })
  const take = (message: unknown): void => {
    if (!isPlain(message)) return
    // The server may ask the editor for its settings: answer that there are none.
    if (message.method !== undefined)
      return message.id === undefined ? undefined : send({ id: message.id, result: null })
    const asker = waiting.get(Number(message.id))
    if (isPlain(message.error)) asker?.reject(new Error(String(message.error.message)))
    else asker?.resolve(message.result)
  }
  child.stdout.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    for (;;) {
      const header = /^Content-Length: (\d+)[^]*?\r\n\r\n/.exec(received.toString("latin1"))
      const end = header === null ? Infinity : header[0].length + Number(header[1])
      if (header === null || received.length < end) return
      take(JSON.parse(received.subarray(header[0].length, end).toString()))
      received = received.subarray(end)
    }
  })
  child.on("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("the language server ended"))
  })

  const capabilities = { textDocument: { hover: { contentFormat: ["markdown"] } } }
  await ask("initialize", { processId: process.pid, rootUri: pathToFileURL(root).href, capabilities })
  send({ method: "initialized", params: {} })
  return {
    hover: async (file, text, at) => {
      const uri = pathToFileURL(join(root, file)).href
      const version = opened.get(uri)
      opened.set(uri, (version ?? 0) + 1)
      if (version === undefined) {
        send({
          method: "textDocument/didOpen",
          params: { textDocument: { uri, languageId: "typescript", version: 1, text } },
        })
      }
      const before = text.slice(0, at).split("\n")
      const position = { line: before.length - 1, character: before[before.length - 1].length }
      const result = await ask("textDocument/hover", { textDocument: { uri }, position })
      const contents = isPlain(result) ? result.contents : undefined
      return isPlain(contents) ? String(contents.value) : ""
    },
    close: () => child.kill(),
  }
}
