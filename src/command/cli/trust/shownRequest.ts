/** Describes to the user what a config requests, so that no part of the request can hide or look like something else. */
import { visible } from "../../../base/text/text.ts"
import { type ProgramStart, sentTo, type TrustRequest } from "../../../base/trust/Trust.ts"
import { startsSameAnywhere } from "./remembered.ts"

/** The largest number of characters of a text that is shown. In a longer text, nobody would find what matters. */
const mostCharacters = 4000

/** Formats a word of a command: a plain word unchanged, any other as JSON. Invisible characters are escaped. */
const shownWord = (word: string): string => (/^[\w./:=@%+,-]+$/.test(word) ? word : visible(JSON.stringify(word)))

const shownCommand = (words: ReadonlyArray<string>): string => words.map(shownWord).join(" ")

const shownInput = (input: unknown): string => visible(JSON.stringify(input) ?? "null")

/** Describes a request in one line, for an error. A long request is cut, and the line states its length. */
export const shortRequest = (request: TrustRequest): string => {
  const text = wholeRequest(request)
  return text.length <= 400 ? text : `${text.slice(0, 300)}… (${text.length} characters)`
}

const wholeRequest = (request: TrustRequest): string => {
  switch (request._tag) {
    case "ProgramStart":
      return `start ${shownCommand(request.command)}`
    case "Sending":
      return `send ${visible(sentTo(request))} to ${visible(request.address)}`
    case "CodeImport":
      return `run the code in ${visible(request.file)}`
    case "Writing":
      return `write and delete files of the run in ${visible(request.folder)}`
  }
}

const detailsOf = (request: ProgramStart, folder: string): ReadonlyArray<string> => {
  const { cwd, variables, input } = request
  return [
    ...(startsSameAnywhere(request)
      ? []
      : [`in the folder ${visible(folder)}${cwd === undefined ? "" : ` (cwd: ${visible(cwd)})`}`]),
    ...(variables.length === 0 ? [] : [`with the environment variables ${variables.map(visible).join(", ")}`]),
    ...(input === null ? [] : [`with the options ${shownInput(input)}`]),
  ]
}

/**
 * Describes a request completely, as lines; undefined if it is too long to be read. `folder` is the one in which a program
 * starts.
 */
export const fullRequest = (request: TrustRequest, folder: string): string | undefined => {
  const details = request._tag === "ProgramStart" ? detailsOf(request, folder) : []
  const lines = [`${visible(request.place)} would`, `  ${wholeRequest(request)}`, ...details.map((line) => `  ${line}`)]
  const text = lines.join("\n")
  return text.length > mostCharacters ? undefined : text
}
