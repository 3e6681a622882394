/* More functions with sleds, as clang writes them: traced.h says what they do. */
#include "tests/agent/ring/sled_functions.S"

#if defined(__x86_64__)
	.macro TAIL name, to
	.p2align 1, 0x90
.L\name\()_tail:
	.byte 0xeb, 0x09
	.nops 9
	jmp \to
	.cfi_endproc
	.size \name, . - \name
	MAP .L\name\()_enter, \name, 0
	MAP .L\name\()_tail, \name, 2
	.endm

	.text
	ENTER sled_call
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	callq *%rdi
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	LEAVE sled_call
	ENTER sled_add
	addsd %xmm1, %xmm0
	LEAVE sled_add
	ENTER sled_sum
	leaq (%rdi, %rsi, 2), %rax
	leaq (%rax, %rdx, 2), %rax
	addq %rdx, %rax
	leaq (%rax, %rcx, 4), %rax
	leaq (%rax, %r8, 4), %rax
	addq %r8, %rax
	leaq (%rax, %r9, 4), %rax
	leaq (%rax, %r9, 2), %rax
	movq %r9, %rdx
	LEAVE sled_sum
	ENTER sled_tail
	TAIL sled_tail, sled_other
#else
	.macro TAIL name, to
	SLED .L\name\()_tail
	b \to
	.cfi_endproc
	.size \name, . - \name
	MAP .L\name\()_enter, \name, 0
	MAP .L\name\()_tail, \name, 1
	.endm

	.text
	ENTER sled_call
	stp x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	blr x0
	ldp x29, x30, [sp], #16
	.cfi_restore x29
	.cfi_restore x30
	.cfi_def_cfa_offset 0
	LEAVE sled_call
	ENTER sled_add
	fadd d0, d0, d1
	LEAVE sled_add
	ENTER sled_sum
	add x0, x0, x1, lsl #1
	add x0, x0, x2, lsl #1
	add x0, x0, x2
	add x0, x0, x3, lsl #2
	add x0, x0, x4, lsl #2
	add x0, x0, x4
	add x0, x0, x5, lsl #2
	add x0, x0, x5, lsl #1
	mov x1, x5
	LEAVE sled_sum
	ENTER sled_tail
	TAIL sled_tail, sled_other
#endif
