import { readFileSync } from "node:fs"
import { Ajv2020 } from "ajv/dist/2020.js"

const folder = new URL("../../schemas/", import.meta.url)

export const schemaAt = (path: string): Record<string, unknown> =>
  JSON.parse(readFileSync(new URL(path, folder), "utf8"))

/** Says what is wrong with a value, by a validator that knows nothing of ours; undefined where nothing is. */
export const validator = (path: string): ((value: unknown) => string | undefined) => {
  const ajv = new Ajv2020({ strict: true })
  const validate = ajv.compile(schemaAt(path))
  return (value) => (validate(value) ? undefined : ajv.errorsText(validate.errors))
}
