/** Answers `GET /v1/models` and `GET /v1/models/NAME` as OpenAI's and Anthropic's servers do. */
import { Effect } from "effect"
import { type GatewayError, gatewayError } from "./GatewayError.ts"

/** The protocol of a client, which decides the form of the list. Clients of Anthropic always send their version. */
type ListForm = "openai" | "anthropic"

export const formOf = (headers: Readonly<Record<string, string | undefined>>): ListForm =>
  headers["anthropic-version"] === undefined ? "openai" : "anthropic"

const modelOf = (id: string, form: ListForm): object =>
  form === "openai"
    ? { id, object: "model", created: 0, owned_by: "effect-rl" }
    : { type: "model", id, display_name: id, created_at: "1970-01-01T00:00:00Z" }

/** Returns the list of models, which are the names that agents may use. */
export const modelList = (models: ReadonlyArray<string>, form: ListForm): object => {
  const data = models.map((id) => modelOf(id, form))
  return form === "openai"
    ? { object: "list", data }
    : { data, has_more: false, first_id: models.at(0) ?? null, last_id: models.at(-1) ?? null }
}

/** Returns one model of the list. */
export const modelNamed = (
  name: string,
  models: ReadonlyArray<string>,
  form: ListForm,
): Effect.Effect<object, GatewayError> =>
  models.includes(name)
    ? Effect.succeed(modelOf(name, form))
    : Effect.fail(
        gatewayError(
          404,
          "model_not_found",
          `the model ${JSON.stringify(name)} is not in the list; there are ${models.join(", ")}`,
        ),
      )
