/** The questions of all examples of this folder: sums, for which the agents have a tool. */
export const questions = [
  { id: "small", question: "What is 2 + 3?", answer: "5" },
  { id: "large", question: "What is 1234 + 8766?", answer: "10000" },
  { id: "negative", question: "What is -7 + 4?", answer: "-3" },
]
