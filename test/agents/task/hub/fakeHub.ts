/**
 * A server on this machine that answers as the Hugging Face hub does: descriptions of data sets, files, redirections of
 * large files to another host, private data sets, and whatever faults a test asks for. It keeps the requests.
 */
import { createHash } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect, type Scope } from "effect"
import { serveHttp } from "../../../servers/listen.ts"

export interface Repository {
  /** The files of each commit. */
  readonly commits: Readonly<Record<string, Readonly<Record<string, string | Uint8Array>>>>
  /** The commit of each branch. A test may move a branch. */
  readonly branches: Record<string, string>
  readonly card?: unknown
  /** The token that may read the data set, if it is private. */
  readonly token?: string
}

export interface Request {
  readonly path: string
  readonly authorization: string | undefined
  readonly host: "hub" | "storage"
}

/** An answer in place of the right one: a status, or the right answer with a wrong byte. */
export type Fault = { readonly status: number; readonly headers?: Readonly<Record<string, string>> } | "damaged"

export interface FakeHub {
  readonly url: string
  readonly requests: ReadonlyArray<Request>
}

const bytesOf = (content: string | Uint8Array): Uint8Array =>
  typeof content === "string" ? new TextEncoder().encode(content) : content

/** Serves data sets. Parquet files are large files, which another host holds. `fault` is asked at each request. */
export const fakeHub = (
  repositories: Readonly<Record<string, Repository>>,
  fault: (path: string, before: number) => Fault | undefined = () => undefined,
): Effect.Effect<FakeHub, never, Scope.Scope> =>
  Effect.gen(function* () {
    const requests: Array<Request> = []
    const record = (request: IncomingMessage, host: Request["host"]): Fault | undefined => {
      const path = request.url ?? ""
      const before = requests.filter((one) => one.path === path).length
      requests.push({ path, authorization: request.headers.authorization, host })
      return fault(path, before)
    }
    const send = (response: ServerResponse, content: Uint8Array, wrong: Fault | undefined): void => {
      if (wrong !== undefined && wrong !== "damaged") {
        response.writeHead(wrong.status, wrong.headers).end('{"error":"Too busy."}')
        return
      }
      const sent = Uint8Array.from(content)
      if (wrong === "damaged") sent[sent.length >> 1] ^= 1
      response.writeHead(200).end(sent)
    }
    const { url: storage } = yield* serveHttp((request, response) => {
      const wrong = record(request, "storage")
      const [, id = "", sha = "", path = ""] = /^\/([^/]+)\/([0-9a-f]{40})\/([^?]+)/.exec(request.url ?? "") ?? []
      send(
        response,
        bytesOf(repositories[decodeURIComponent(id)]?.commits[sha]?.[decodeURIComponent(path)] ?? ""),
        wrong,
      )
    })
    const { url } = yield* serveHttp((request, response) => {
      const wrong = record(request, "hub")
      const refuse = (status: number, code: string): void => {
        response.writeHead(status, { "x-error-code": code }).end(JSON.stringify({ error: code }))
      }
      const asked = new URL(request.url ?? "", "http://hub")
      const [, apiId, revision] = /^\/api\/datasets\/(.+)\/revision\/([^/]+)$/.exec(asked.pathname) ?? []
      const [, fileId, sha, path] = /^\/datasets\/(.+)\/resolve\/([^/]+)\/(.+)$/.exec(asked.pathname) ?? []
      const id = apiId ?? fileId ?? ""
      const repository = repositories[id]
      const { token } = repository ?? {}
      if (repository === undefined || (token !== undefined && request.headers.authorization !== `Bearer ${token}`)) {
        return refuse(401, "RepoNotFound")
      }
      if (revision !== undefined) {
        const name = decodeURIComponent(revision)
        const commit = repository.branches[name] ?? name
        const files = repository.commits[commit]
        if (files === undefined) return refuse(404, "RevisionNotFound")
        const siblings = Object.entries(files).map(([rfilename, content]) => {
          const bytes = bytesOf(content)
          const isLarge = rfilename.endsWith(".parquet")
          const lfs = { sha256: createHash("sha256").update(bytes).digest("hex"), size: bytes.length }
          return { rfilename, size: bytes.length, ...(isLarge ? { lfs } : {}) }
        })
        const info = {
          id,
          sha: commit,
          siblings,
          ...(repository.card === undefined ? {} : { cardData: repository.card }),
        }
        return send(response, bytesOf(JSON.stringify(info)), wrong)
      }
      const content = repository.commits[sha]?.[decodeURIComponent(path)]
      if (content === undefined) return refuse(404, "EntryNotFound")
      if (path.endsWith(".parquet") && wrong === undefined) {
        const location = `${storage}/${encodeURIComponent(id)}/${sha}/${encodeURIComponent(path)}?signature=secret`
        response.writeHead(302, { location }).end()
        return
      }
      send(response, bytesOf(content), wrong)
    })
    return { url, requests }
  })
