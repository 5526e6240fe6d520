/** Compares the tokens of a teacher with those of the trained model. */
import type { Tokenizer } from "../../base/tokens/Tokenizer.ts"

const expected = "expected a teacher with the tokens of the trained model"

/** Returns how the vocabulary of a teacher differs from the model's; undefined if both are equal. */
export const vocabularyProblem = (own: Tokenizer, teacher: Tokenizer): string | undefined => {
  if (own.vocabSize !== teacher.vocabSize)
    return `${expected}, which has ${own.vocabSize}; found ${teacher.vocabSize} tokens`
  const shown = (tokenizer: Tokenizer, id: number) => JSON.stringify(tokenizer.decode([id], { keepSpecial: true }))
  for (let id = 0; id < own.vocabSize; id++) {
    const [mine, other] = [shown(own, id), shown(teacher, id)]
    if (mine !== other || own.bytesOf(id).join() !== teacher.bytesOf(id).join())
      return `${expected}; token ${id} is ${other} instead of ${mine}`
  }
  return undefined
}

/** Returns a problem if a server has another text for a token. Texts with parts of characters are not compared. */
export const tokenProblem = (tokenizer: Tokenizer, id: number, text: string | null): string | undefined => {
  const own = tokenizer.decode([id])
  const isComparable = text !== null && text !== "" && own !== "" && !`${own}${text}`.includes("\uFFFD")
  return isComparable && own.trim() !== text.trim()
    ? `${expected}; token ${id} is ${JSON.stringify(text)} instead of ${JSON.stringify(own)}`
    : undefined
}
