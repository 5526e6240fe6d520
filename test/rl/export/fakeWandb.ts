/**
 * A server on this machine that answers `wandb sync` as Weights & Biases does: GraphQL for the run and the addresses of its
 * files, the file stream for history, summary and exit code, and the uploads of files. It keeps what it was sent.
 */
import { Effect } from "effect"
import { type HttpServer, serveHttp } from "../../servers/listen.ts"

export const fakeWandb = Effect.gen(function* () {
  const sent = {
    runs: new Array<Readonly<Record<string, unknown>>>(),
    history: new Array<string>(),
    summary: "",
    exitCode: undefined as number | undefined,
    files: new Map<string, Buffer>(),
    unknown: new Array<string>(),
  }

  const graphql = (name: string, variables: Readonly<Record<string, unknown>>): object => {
    if (name === "Viewer")
      return { viewer: { id: "1", entity: "ada", username: "ada", flags: "{}", teams: { edges: [] } } }
    if (name === "ServerFeaturesQuery") return { serverInfo: { features: [] } }
    if (name === "UpsertBucket") {
      sent.runs.push(variables)
      const entity = { id: "1", name: variables.entity ?? "ada" }
      const bucket = {
        id: "1",
        name: variables.name,
        displayName: variables.displayName,
        project: { id: "1", name: variables.project, entity },
        historyLineCount: 0,
      }
      return { upsertBucket: { bucket, inserted: true } }
    }
    if (name === "CreateRunFiles" && Array.isArray(variables.files)) {
      const files = variables.files.map((file: string) => ({ name: file, uploadUrl: `${url}/upload/${file}` }))
      return { createRunFiles: { runID: "1", uploadHeaders: [], files } }
    }
    sent.unknown.push(name)
    return {}
  }

  const answer = (method: string, path: string, body: Buffer): object => {
    if (path.startsWith("/upload/") && method === "PUT") {
      sent.files.set(decodeURIComponent(path.slice("/upload/".length)), body)
      return {}
    }
    if (path === "/graphql") {
      const { operationName, query = "", variables = {} } = JSON.parse(body.toString())
      return { data: graphql(operationName ?? /(?:query|mutation) (\w+)/.exec(query)?.[1] ?? "", variables) }
    }
    if (path.endsWith("/file_stream")) {
      const { files = {}, exitcode } = JSON.parse(body.toString())
      sent.history.push(...(files["wandb-history.jsonl"]?.content ?? []))
      sent.summary = files["wandb-summary.json"]?.content.at(-1) ?? sent.summary
      sent.exitCode = exitcode ?? sent.exitCode
      return { limits: {} }
    }
    sent.unknown.push(`${method} ${path}`)
    return {}
  }

  const { url }: HttpServer = yield* serveHttp((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const content = JSON.stringify(answer(request.method ?? "", request.url ?? "", Buffer.concat(chunks)))
      response.writeHead(200, { "content-type": "application/json" }).end(content)
    })
  })
  return { url, sent }
})
