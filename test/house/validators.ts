import { readFileSync } from "node:fs"
import { Ajv2020 } from "ajv/dist/2020.js"

const folder = new URL("../../schemas/", import.meta.url)

export const schemaAt = (path: string): Record<string, unknown> =>
  JSON.parse(readFileSync(new URL(path, folder), "utf8"))

type Validator = (value: unknown) => string | undefined

/** The validators that test files of this process have made: a large schema takes half a second to compile. */
const compiled = new Map<string, Validator>()

const makeValidator = (path: string): Validator => {
  const ajv = new Ajv2020({ strict: true, code: { optimize: false } })
  const validate = ajv.compile(schemaAt(path))
  return (value) => (validate(value) ? undefined : ajv.errorsText(validate.errors))
}

/** Says what is wrong with a value, by a validator that knows nothing of ours; undefined where nothing is. */
export const validator = (path: string): Validator => {
  const found = compiled.get(path) ?? makeValidator(path)
  compiled.set(path, found)
  return found
}
