import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Copy, DockerfileParser } from "dockerfile-ast"
import { validate } from "dockerfile-utils"
import { assert, describe, it } from "vitest"

const root = join(import.meta.dirname, "../..")
const dockerfile = readFileSync(join(root, "Dockerfile"), "utf8")
const problemsIn = (text: string) =>
  validate(text, {}).map(({ message, range }) => `Dockerfile:${range.start.line + 1}: ${message}`)
const instructions = DockerfileParser.parse(dockerfile).getInstructions()
const last = (keyword: string) => instructions.findLast((instruction) => instruction.getKeyword() === keyword)

describe("the Dockerfile", () => {
  it("has nothing that a linter complains of", () => {
    assert.deepStrictEqual(problemsIn(dockerfile), [])
    assert.lengthOf(problemsIn(dockerfile.replace("WORKDIR /work", "WORKDRI /work")), 1)
  })

  it("names the version of each base image", () => {
    const images = instructions
      .filter((one) => one.getKeyword() === "FROM")
      .map((one) => one.getArguments()[0]?.getValue())
    assert.isAtLeast(images.length, 2)
    for (const image of images) assert.match(image ?? "", /^[\w/]+:\d[\w.-]*$/)
  })

  it("ends as a user without rights, by number, and with a health check", () => {
    assert.match(last("USER")?.getArgumentsContent() ?? "", /^[1-9]\d*:[1-9]\d*$/)
    assert.isAbove(last("USER")?.getRange().start.line ?? 0, last("RUN")?.getRange().start.line ?? 0)
    assert.include(last("HEALTHCHECK")?.getRawArgumentsContent(), "CMD [")
  })

  it("copies only files that exist and that .dockerignore lets in", () => {
    const letIn = readFileSync(join(root, ".dockerignore"), "utf8")
      .split("\n")
      .filter((line) => line.startsWith("!"))
      .map((line) => line.slice(1))
    for (const name of letIn) assert.isTrue(existsSync(join(root, name)), `.dockerignore: ${name}`)
    const copies = instructions.filter((one) => one instanceof Copy).filter((one) => one.getFromFlag() === null)
    const copied = copies.flatMap((one) =>
      one
        .getArguments()
        .slice(0, -1)
        .map((argument) => argument.getValue()),
    )
    assert.isNotEmpty(copied)
    for (const name of copied) {
      assert.isTrue(existsSync(join(root, name)), name)
      assert.include([".", ...letIn], name.split("/")[0])
    }
  })
})
