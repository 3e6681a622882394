/* Functions with sleds as clang writes them, and their map, so that any compiler builds the test.
 *   uint64_t sled_leaf(uint64_t value)   value * 3 + 1
 *   uint64_t sled_other(uint64_t value)  value + 7
 */
	.macro MAP sled, function, kind, version=2
	.section xray_instr_map, "a", %progbits
	.p2align 4
999:	.quad \sled - 999b
998:	.quad \function - 998b
	.byte \kind, 1, \version
	.zero 13
	.text
	.endm

#if defined(__x86_64__)
	.macro ENTER name
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
.L\name\()_enter:
	.byte 0xeb, 0x09
	.nops 9
	.endm
	.macro LEAVE name
	.p2align 1, 0x90
.L\name\()_exit:
	retq
	.nops 10
	.cfi_endproc
	.size \name, . - \name
	MAP .L\name\()_enter, \name, 0
	MAP .L\name\()_exit, \name, 1
	.endm

	.text
	ENTER sled_leaf
	leaq 1(%rdi, %rdi, 2), %rax
	LEAVE sled_leaf
	ENTER sled_other
	leaq 7(%rdi), %rax
	LEAVE sled_other
#else
	.macro SLED label
	.p2align 2
\label:
	b .+32
	.rept 7
	nop
	.endr
	.endm
	.macro ENTER name
	.globl \name
	.type \name, %function
\name:
	.cfi_startproc
	SLED .L\name\()_enter
	.endm
	.macro LEAVE name
	SLED .L\name\()_exit
	ret
	.cfi_endproc
	.size \name, . - \name
	MAP .L\name\()_enter, \name, 0
	MAP .L\name\()_exit, \name, 1
	.endm

	.text
	ENTER sled_leaf
	add x0, x0, x0, lsl #1
	add x0, x0, #1
	LEAVE sled_leaf
	ENTER sled_other
	add x0, x0, #7
	LEAVE sled_other
#endif

	.section .note.GNU-stack, "", %progbits
