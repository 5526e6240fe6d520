import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import { TestClock } from "effect/testing"
import { ObjectStore, S3 } from "../../../../src/index.ts"

const options = {
  bucket: "runs",
  endpoint: "http://store:9000",
  accessKeyId: "AKIA",
  secretAccessKey: Redacted.make("hidden"),
}

/** An answer of the server; an error is why there is none. */
type ServerAnswer = readonly [number, string] | Error

const refused = Object.assign(new Error("fetch failed"), { code: "ECONNREFUSED" })

/** Answers of the server in their order; the last one is repeated. */
const answering = (more: Partial<S3.S3Options>, ...answers: ReadonlyArray<ServerAnswer>) => {
  const requests: Array<HttpClientRequest.HttpClientRequest> = []
  const client = HttpClient.make((request) => {
    const answer = answers[Math.min(requests.push(request), answers.length) - 1]
    return answer instanceof Error
      ? Effect.fail(
          new HttpClientError.HttpClientError({
            reason: new HttpClientError.TransportError({ request, cause: answer }),
          }),
        )
      : Effect.succeed(HttpClientResponse.fromWeb(request, new Response(answer[1], { status: answer[0] })))
  })
  return {
    requests,
    layer: S3.layer({ ...options, ...more }).pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, client))),
  }
}

const problem = (code: string, message: string): string =>
  `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`

const put = Effect.flatMap(ObjectStore, (store) => store.put("a", Uint8Array.of(1)))

/** The error of a write, after all attempts. */
const errorAfter = (...answers: ReadonlyArray<ServerAnswer>) =>
  Effect.gen(function* () {
    const { requests, layer } = answering({}, ...answers)
    const fiber = yield* Effect.forkChild(Effect.flip(Effect.provide(put, layer)))
    yield* TestClock.adjust("7 seconds")
    const { _tag, message } = yield* Fiber.join(fiber)
    assert.strictEqual(_tag, "RunStoreError")
    return { message, attempts: requests.length }
  })

const page = (contents: string, end = "<IsTruncated>false</IsTruncated>"): string =>
  `<R><EncodingType>url</EncodingType>${contents}${end}</R>`

describe("a list of keys of S3", () => {
  const listed = (...answers: ReadonlyArray<ServerAnswer>) => {
    const { layer } = answering({}, ...answers)
    return Effect.flatMap(ObjectStore, (store) => store.list("")).pipe(Effect.provide(layer))
  }
  const next = (token: string) =>
    `<IsTruncated>true</IsTruncated><NextContinuationToken>${token}</NextContinuationToken>`
  const key = (name: string) => `<Contents><Key>${name}</Key><Size>1</Size></Contents>`

  it.effect("may have several pages, and keys with any characters", () =>
    Effect.gen(function* () {
      const pages = [
        page(key("a%20b+c"), next("1")),
        page(key("&amp;&#x41;&#99999999;"), next("2")),
        page(key("%C3%A9")),
      ]
      const keys = yield* listed(...pages.map((text) => [200, text] as const))
      assert.deepStrictEqual(keys, ["a b c", "&A&#99999999;", "é"])
    }),
  )

  const unreadable = "http://store:9000 sends a list of keys that cannot be read; use a server that has ListObjectsV2"
  const wrong: ReadonlyArray<readonly [title: string, text: string, message: string]> = [
    ["a key that is not encoded", page(key("%zz")), unreadable],
    ["a size that is none", page("<Contents><Key>a</Key><Size>-5</Size></Contents>"), unreadable],
    ["objects without end", page("<Contents>".repeat(1_000_000)), unreadable],
    [
      "the same page again and again",
      page(key("a"), next("same")),
      "http://store:9000 lists the same keys again and again; use a server that has ListObjectsV2",
    ],
    [
      "no next page",
      page(key("a"), "<IsTruncated>true</IsTruncated>"),
      "http://store:9000 lists only some of the keys; use a server that has ListObjectsV2",
    ],
    [
      "more bytes than a page can have",
      " ".repeat(17 * 2 ** 20),
      "http://store:9000 sends more than 16777216 bytes, which is more than was asked for",
    ],
  ]
  for (const [title, text, message] of wrong) {
    it.effect(`is refused with one line: ${title}`, () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* Effect.flip(listed([200, text]))).message, message)
      }),
    )
  }
})

describe("a request to S3", () => {
  it.effect("is repeated while the server is busy or gives no answer", () =>
    Effect.gen(function* () {
      const busy = [503, problem("SlowDown", "Please reduce your request rate.")] as const
      const { requests, layer } = answering({}, busy, refused, [500, ""], [200, ""])
      const fiber = yield* Effect.forkChild(Effect.provide(put, layer))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(fiber)
      assert.lengthOf(requests, 4)
      assert.strictEqual(requests[0]?.url, "http://store:9000/runs/a")
    }),
  )

  it.effect("gives up after six attempts, and names the server and the cause", () =>
    Effect.gen(function* () {
      const expired = new Error("fetch failed", { cause: new Error("certificate has expired") })
      for (const [error, cause] of [
        [refused, "ECONNREFUSED"],
        [expired, "certificate has expired"],
      ] as const) {
        assert.deepStrictEqual(yield* errorAfter(error), {
          message: `http://store:9000 gives no answer (${cause}); is the server running?`,
          attempts: 6,
        })
      }
    }),
  )

  const refusals: ReadonlyArray<readonly [string, readonly [number, string], string]> = [
    [
      "a full store",
      [507, problem("XMinioStorageFull", "Storage backend has reached its minimum free drive threshold.")],
      "http://store:9000 answered 507 XMinioStorageFull: Storage backend has reached its minimum free drive threshold; the store is full: make room in the bucket runs",
    ],
    [
      "a wrong secret",
      [403, problem("SignatureDoesNotMatch", "The request signature does not match")],
      "http://store:9000 answered 403 SignatureDoesNotMatch: The request signature does not match; check the key AKIA and its secret (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)",
    ],
    [
      "a key without rights",
      [403, problem("AccessDenied", "Access Denied.")],
      "http://store:9000 answered 403 AccessDenied: Access Denied; the key AKIA needs the right to read, write and list runs",
    ],
    [
      "another region",
      [301, problem("PermanentRedirect", "The bucket is elsewhere")],
      "http://store:9000 answered 301 PermanentRedirect: The bucket is elsewhere; set the region of the bucket, us-east-1 is not it (AWS_REGION)",
    ],
    [
      "a wrong clock",
      [403, problem("RequestTimeTooSkewed", "The difference is too large")],
      "http://store:9000 answered 403 RequestTimeTooSkewed: The difference is too large; set this machine's clock",
    ],
    [
      "a character that is none",
      [400, `<Error><Code>X</Code><Message>&#99999999;</Message></Error>${"<x>".repeat(100_000)}`],
      "http://store:9000 answered 400 X: &#99999999;",
    ],
    ["a page that is no S3", [404, "<html>nothing here</html>"], "http://store:9000 answered 404"],
  ]
  for (const [name, answer, message] of refusals) {
    it.effect(`to ${name} fails at once with what to do`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* errorAfter(answer), { message, attempts: 1 })
      }),
    )
  }

  it.effect("to an address that is none is refused before anything is sent", () =>
    Effect.gen(function* () {
      const { requests, layer } = answering({ endpoint: "store" }, [200, ""])
      const { message } = yield* Effect.flip(Effect.provide(put, layer))
      assert.strictEqual(message, "expected the address of a server, such as https://host:9000, found store")
      assert.lengthOf(requests, 0)
    }),
  )
})

describe("a listing of a bucket", () => {
  const page = (keys: ReadonlyArray<string>, more: string): string =>
    `<ListBucketResult>${keys.map((key) => `<Contents><Key>${key}</Key></Contents>`).join("")}${more}</ListBucketResult>`
  const list = Effect.flatMap(ObjectStore, (store) => store.list("many/"))

  it.effect("goes on until the last page", () =>
    Effect.gen(function* () {
      const next = "<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b=</NextContinuationToken>"
      const { requests, layer } = answering(
        { prefix: "team/" },
        [200, page(["team/many/1", "team/many/2"], next)],
        [200, page(["team/many/3"], "<IsTruncated>false</IsTruncated>")],
      )
      assert.deepStrictEqual(yield* Effect.provide(list, layer), ["many/1", "many/2", "many/3"])
      assert.deepStrictEqual(
        requests.map(({ url }) => new URL(url).searchParams.get("continuation-token")),
        [null, "a&b="],
      )
      assert.strictEqual(new URL(requests[1]?.url ?? "").searchParams.get("prefix"), "team/many/")
    }),
  )

  it.effect("fails if the server keeps the rest back, because a run would lack files", () =>
    Effect.gen(function* () {
      const { layer } = answering({}, [200, page(["many/1"], "<IsTruncated>true</IsTruncated>")])
      const { message } = yield* Effect.flip(Effect.provide(list, layer))
      assert.strictEqual(message, "http://store:9000 lists only some of the keys; use a server that has ListObjectsV2")
    }),
  )

  it.effect("decodes the keys if the server has encoded them", () =>
    Effect.gen(function* () {
      const plain = answering({}, [200, page(["many/a+b%20c", "many/&lt;&#xfc;&#38;"], "")])
      assert.deepStrictEqual(yield* Effect.provide(list, plain.layer), ["many/a+b%20c", "many/<ü&"])
      const coded = answering({}, [200, page(["many/a%2Bb+c"], "<EncodingType>url</EncodingType>")])
      assert.deepStrictEqual(yield* Effect.provide(list, coded.layer), ["many/a+b c"])
    }),
  )
})
