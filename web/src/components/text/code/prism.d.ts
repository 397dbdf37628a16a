declare module "prismjs/components/prism-core" {
  export interface Token {
    type: string;
    content: Tokens;
  }
  export type Tokens = string | Token | (string | Token)[];
  const Prism: {
    manual: boolean;
    languages: Record<string, unknown>;
    tokenize(code: string, grammar: unknown): (string | Token)[];
  };
  export default Prism;
}
declare module "prismjs/components/*";
