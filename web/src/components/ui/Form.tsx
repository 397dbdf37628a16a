import type { ComponentProps } from "react";

interface Props extends Omit<ComponentProps<"form">, "onSubmit"> {
  onSubmit: () => void;
  act?: { isError: boolean; reset: () => void }; // what it sends; its error is about the values that were sent
}

/** A form that calls a function instead of loading another page. An error goes when something else is entered. */
export function Form({ onSubmit, act, ...rest }: Props) {
  return (
    <form
      className="stack"
      {...rest}
      onInput={() => act?.isError && act.reset()}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    />
  );
}
