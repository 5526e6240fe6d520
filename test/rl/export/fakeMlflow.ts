/**
 * A server on this machine that answers as the tracking server of MLflow does. It checks requests by MLflow's rules
 * (`mlflow/utils/validation.py` and `mlflow/server/handlers.py`), and keeps what it was sent.
 */
import { randomUUID } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect } from "effect"
import { serveHttp } from "../../servers/listen.ts"

interface Run {
  readonly id: string
  status: string
  readonly params: Map<string, string>
  readonly tags: Map<string, string>
  readonly metrics: Array<{
    readonly key: string
    readonly value: number
    readonly timestamp: number
    readonly step: number
  }>
  readonly files: Map<string, Buffer>
}

interface Options {
  /** The header that requests must have. */
  readonly authorization?: string
  /** Experiments that are deleted. */
  readonly deleted?: ReadonlyArray<string>
  /** A part of the path of requests that fail. */
  readonly failsAt?: string
}

class Refused extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

const wrong = (message: string): Refused => new Refused(400, "INVALID_PARAMETER_VALUE", message)

const check = (isRight: boolean, message: string): void => {
  if (!isRight) throw wrong(message)
}

const checkName = (name: unknown): string => {
  if (typeof name !== "string" || name === "" || name.length > 250) throw wrong(`invalid name: ${String(name)}`)
  check(/^[/\w.\- ]*$/.test(name), `Invalid name: '${name}'`)
  check(!/(?:^|\/)\.{0,2}(?:\/|$)/.test(name), `This name would resolve to another: ${name}`)
  return name
}

const items = (value: unknown, most: number): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  if (value === undefined) return []
  if (!Array.isArray(value) || value.length > most) throw wrong(`expected at most ${most} items`)
  return value
}

export const fakeMlflow = (options: Options) =>
  Effect.gen(function* () {
    const experiments = new Map<string, string>()
    const runs: Array<Run> = []
    const runOf = (id: unknown): Run => {
      const run = runs.find((one) => one.id === id)
      if (run === undefined) throw new Refused(404, "RESOURCE_DOES_NOT_EXIST", `Run with id=${String(id)} not found`)
      return run
    }

    const answer = (method: string, url: URL, bytes: Buffer): unknown => {
      const artifact = /^\/api\/2\.0\/mlflow-artifacts\/artifacts\/(\d+)\/(\w+)\/artifacts\/(.+)$/.exec(url.pathname)
      if (artifact !== null) {
        check(method === "PUT", "expected PUT")
        runOf(artifact[2]).files.set(decodeURIComponent(artifact[3]), bytes)
        return {}
      }
      const path = url.pathname.replace("/api/2.0/mlflow/", "")
      if (path === "experiments/get-by-name") {
        check(method === "GET", "expected GET")
        const name = url.searchParams.get("experiment_name") ?? ""
        if (options.deleted?.includes(name) === true)
          return { experiment: { experiment_id: "9", name, lifecycle_stage: "deleted" } }
        const id = experiments.get(name)
        if (id === undefined)
          throw new Refused(404, "RESOURCE_DOES_NOT_EXIST", `Could not find experiment with name '${name}'`)
        return { experiment: { experiment_id: id, name, lifecycle_stage: "active" } }
      }
      check(method === "POST", "expected POST")
      check(bytes.length <= 1e6, "Batched logging API requests must be at most 1000000 bytes")
      const body: Readonly<Record<string, unknown>> = JSON.parse(bytes.toString())
      if (path === "experiments/create") {
        const name = String(body.name)
        check(body.name !== "" && !experiments.has(name), "no new name")
        experiments.set(name, String(experiments.size + 1))
        return { experiment_id: experiments.get(name) }
      }
      if (path === "runs/create") {
        check([...experiments.values()].includes(String(body.experiment_id)), "no such experiment")
        check(Number.isInteger(body.start_time), "start_time: expected an integer")
        const tags = new Map(items(body.tags, 100).map(({ key, value }) => [checkName(key), String(value)]))
        const run: Run = {
          id: randomUUID().replaceAll("-", ""),
          status: "RUNNING",
          params: new Map(),
          tags,
          metrics: [],
          files: new Map(),
        }
        runs.push(run)
        const uri = `mlflow-artifacts:/${String(body.experiment_id)}/${run.id}/artifacts`
        return {
          run: {
            info: { run_id: run.id, run_uuid: run.id, status: "RUNNING", artifact_uri: uri },
            data: {},
            inputs: {},
          },
        }
      }
      if (path === "runs/log-batch") {
        const run = runOf(body.run_id)
        const [metrics, params] = [items(body.metrics, 1000), items(body.params, 100)]
        check(metrics.length + params.length <= 1000, "at most 1000 metrics, params, and tags")
        for (const { key, value } of params) {
          check(typeof value === "string" && value.length <= 500, "a param's value")
          check((run.params.get(checkName(key)) ?? value) === value, "Changing param values is not allowed")
          run.params.set(checkName(key), String(value))
        }
        for (const { key, value, timestamp, step } of metrics) {
          check(typeof value === "number" && Number.isFinite(value), "Please specify value as a valid double")
          check(Number.isInteger(timestamp) && Number(timestamp) > 1e12, "timestamp: expected milliseconds")
          check(Number.isInteger(step), "step: expected an integer")
          run.metrics.push({
            key: checkName(key),
            value: Number(value),
            timestamp: Number(timestamp),
            step: Number(step),
          })
        }
        return {}
      }
      if (path !== "runs/update") throw new Refused(404, "ENDPOINT_NOT_FOUND", path)
      const run = runOf(body.run_id)
      check(["RUNNING", "FINISHED", "FAILED", "KILLED"].includes(String(body.status)), "status")
      check(body.status === "RUNNING" || Number.isInteger(body.end_time), "end_time: expected an integer")
      run.status = String(body.status)
      return { run_info: { run_id: run.id, status: run.status } }
    }

    const serve = (request: IncomingMessage, response: ServerResponse): void => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const url = new URL(request.url ?? "/", "http://localhost")
        const reply = (status: number, body: unknown): void => {
          response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
        }
        try {
          if (options.authorization !== undefined && request.headers.authorization !== options.authorization) {
            throw new Refused(401, "UNAUTHENTICATED", `bad header ${request.headers.authorization}`)
          }
          if (options.failsAt !== undefined && url.pathname.includes(options.failsAt)) {
            throw new Refused(400, "INTERNAL_ERROR", `no space left ${request.headers.authorization}`)
          }
          reply(200, answer(request.method ?? "", url, Buffer.concat(chunks)))
        } catch (error) {
          if (!(error instanceof Refused)) return reply(500, { error_code: "INTERNAL_ERROR", message: String(error) })
          reply(error.status, { error_code: error.code, message: error.message })
        }
      })
    }
    const { url } = yield* serveHttp(serve)
    return { url, experiments, runs }
  })
