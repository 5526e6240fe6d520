/**
 * A server on this machine that takes models as the Hugging Face hub does: it makes repositories, says which files are
 * large, stores those by git-lfs at another host, and takes commits only if all that they name is there.
 */
import { createHash } from "node:crypto"
import type { IncomingMessage } from "node:http"
import { Effect } from "effect"
import { serveHttp } from "../../../servers/listen.ts"

interface Refusal {
  readonly status: number
  readonly error: string
}

export interface Commit {
  readonly summary: string
  readonly files: Readonly<Record<string, Buffer>>
}

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex")

const textOf = (request: IncomingMessage): Promise<Buffer> =>
  new Promise((done, fail) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => done(Buffer.concat(chunks)))
    request.on("error", fail)
  })

/** Serves a hub whose users have these tokens. */
export const fakeUploads = (tokens: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const repositories = new Map<string, { readonly isPrivate: boolean; readonly commits: Array<Commit> }>()
    const stored = new Map<string, Buffer>()
    const verified = new Set<string>()
    const uploads: Array<string> = []
    const faults = { objects: false }
    const leaked: Array<string> = []

    const { url: storage } = yield* serveHttp(async (request, response) => {
      if (request.headers.authorization !== undefined) leaked.push(request.headers.authorization)
      const oid = (request.url ?? "").slice(1)
      const bytes = await textOf(request)
      const isRight =
        request.method === "PUT" && sha256(bytes) === oid && request.headers["x-signature"] === `of-${oid}`
      if (isRight) stored.set(oid, bytes)
      uploads.push(oid)
      response.writeHead(isRight ? 200 : 403).end()
    })

    const answer = (path: string, type: string, user: string | undefined, text: string): object | Refusal => {
      if (path === "/api/repos/create") {
        const { name, organization, type: kind, private: isPrivate } = JSON.parse(text)
        if (kind !== "model" || user !== organization)
          return { status: 403, error: `You may not write to ${organization}` }
        const id = `${organization}/${name}`
        if (name === "given") return { status: 403, error: "You may make no repository" }
        if (repositories.has(id)) return { status: 409, error: "You already created this model repo" }
        repositories.set(id, { isPrivate, commits: [] })
        return { url: `/${id}` }
      }
      const asked = repositories.get(/^\/api\/models\/([^/]+\/[^/]+)$/.exec(path)?.[1] ?? "")
      if (asked !== undefined) return { private: asked.isPrivate }
      const [, id = "", action = ""] =
        /^\/api\/models\/([^/]+\/[^/]+)\/(preupload|commit)\/main$/.exec(path) ??
        /^\/([^/]+\/[^/]+)\.git\/info\/(lfs)\/objects\/batch$/.exec(path) ??
        []
      const repository = repositories.get(id)
      if (path === "/verify") {
        verified.add(JSON.parse(text).oid)
        return {}
      }
      if (repository === undefined || user !== id.split("/")[0]) return { status: 404, error: "Repository not found" }
      if (action === "preupload") {
        const { files } = JSON.parse(text)
        const isRight = files.every(
          ({ sample, size, sha }: { sample: string; size: number; sha: string }) =>
            Buffer.from(sample, "base64").length === Math.min(512, size) && sha.length === 64,
        )
        if (!isRight) return { status: 400, error: "wrong description of a file" }
        return {
          files: files.map(({ path: file }: { path: string }) => ({
            path: file,
            uploadMode: /\.(?:onnx|safetensors|gif)$/.test(file) ? "lfs" : "regular",
          })),
        }
      }
      if (action === "lfs") {
        if (type !== "application/vnd.git-lfs+json") return { status: 415, error: "wrong type" }
        const { operation, transfers, hash_algo: algorithm, objects } = JSON.parse(text)
        if (operation !== "upload" || !transfers.includes("basic") || algorithm !== "sha256")
          return { status: 422, error: "wrong operation" }
        return {
          transfer: "basic",
          objects: objects.map(({ oid, size }: { oid: string; size: number }) => ({
            oid,
            size,
            ...(faults.objects && { error: { code: 507, message: `no room for Bearer ${user} and t0ken` } }),
            ...(!stored.has(oid) && {
              actions: {
                upload: { href: `${storage}/${oid}`, header: { "x-signature": `of-${oid}` } },
                verify: { href: `${url}/verify`, header: {} },
              },
            }),
          })),
        }
      }
      if (type !== "application/x-ndjson") return { status: 415, error: "wrong type" }
      const [header, ...operations] = text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
      if (header.key !== "header" || header.value.summary === "") return { status: 400, error: "no header" }
      const files: Record<string, Buffer> = {}
      for (const { key, value } of operations) {
        const large = stored.get(value.oid)
        if (key === "file" && value.encoding === "base64") files[value.path] = Buffer.from(value.content, "base64")
        else if (key === "lfsFile" && large !== undefined && large.length === value.size && verified.has(value.oid))
          files[value.path] = large
        else return { status: 400, error: `${value.path} is not there` }
      }
      repository.commits.push({ summary: header.value.summary, files })
      return { success: true, commitUrl: `${url}/${id}/commit/1`, commitOid: "1".repeat(40) }
    }
    const { url } = yield* serveHttp(async (request, response) => {
      const text = (await textOf(request)).toString()
      const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? ""
      const reply =
        tokens[token] === undefined
          ? { status: 401, error: `Invalid token ${token}` }
          : answer(request.url ?? "", request.headers["content-type"] ?? "", tokens[token], text)
      const status = "status" in reply && typeof reply.status === "number" ? reply.status : 200
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(reply))
    })
    return { url, repositories, uploads, leaked, faults }
  })
